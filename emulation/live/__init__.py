"""Looking at a running fabric: what is known of it (`model`), where that comes from, and how it is shown.

    VirtualSource  (a run in virtual time, paced against the wall clock)  \\
                                                                           Reading -> Observer -> Snapshot -> terminal | web page
    HeldSource     (a held Mininet network, through its control socket)   /

A source also takes commands: fail or mend a link, start the traffic, change the pace.
"""

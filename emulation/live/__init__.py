"""Looking at a running fabric: what is known of it, where that comes from, how it is shown.

    VirtualSource (a run in virtual time, paced)  \\
                                                   Reading -> Observer -> Snapshot -> terminal, page
    HeldSource (a held network, by its socket)    /

A source also takes commands: fail or mend a link, start the traffic, change the pace.
"""

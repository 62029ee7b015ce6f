"""Views of a running fabric: its counters, their sources, and the terminal and page that show them.

    VirtualSource (a run in virtual time, paced)  \\
                                                   Reading -> Observer -> Snapshot -> terminal, page
    HeldSource (a held network, by its socket)    /

A source also takes commands: fail or mend a link, start the traffic, change the pace.
"""

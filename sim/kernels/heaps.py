"""A binary heap of integers, the least on top: events of a switch's ports within a window."""

from sim.kernels.jit import at, inlined


@inlined
def sift_up(heap, place):
    """Move the entry at a place towards the top until its parent comes before it."""
    entry = heap[at(place)]
    while place > 0:
        parent = (place - 1) >> 1
        if heap[at(parent)] <= entry:
            break

        heap[at(place)] = heap[at(parent)]
        place = parent

    heap[at(place)] = entry


@inlined
def sift_down(heap, size):
    """Move the top entry away from the top until it comes before its children."""
    entry = heap[0]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[at(child + 1)] < heap[at(child)]:
            child += 1

        if entry <= heap[at(child)]:
            break

        heap[at(place)] = heap[at(child)]
        place = child

    heap[at(place)] = entry

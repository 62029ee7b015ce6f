"""Which load balancer to run: conditions, candidates, ranking and advice, and the runs behind them.

questions.py    a fabric and a workload in numbers, as an experiment's settings
workloads.py    the collectives that every candidate carries by default
conditions.py   events that may happen to the fabric meanwhile
candidates.py   load balancers that fit the allowed changes, and the needs of each
ranking.py      the order by the worst case, with the margin that decides it
advice.py       the order in sentences, and the changes that would turn it
rounds.py       the runs, seed after seed, within a time budget
answer.py       the answer as a table, a picture and JSON
"""

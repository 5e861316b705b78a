"""What the end-to-end and attack suites share: starting sbx as a user does, looking at processes and trees, terminals.

Waiting is always for something to become true, with a deadline that is far longer than it can take (wait_until); no
test asserts how fast anything is.
"""

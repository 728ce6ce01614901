"""What plays Gymnasium's environments for Tutti, in processes of its own: docs/guide/gymnasium.md.

Tutti starts it (collector/gym/); nobody calls it by hand. It needs gymnasium and numpy, and nothing else.
"""

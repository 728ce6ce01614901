"""A module that does not come back from its import."""
import time

time.sleep(10000)

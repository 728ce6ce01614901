"""The processes of a run, as /proc shows them."""
import os


def family(root):
    """The process and all its descendants now."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as file:
                    parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
    members = {root}
    grown = True
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in members} - members
        members |= grown
    return members


def role_of(pid):
    """'learner 0', 'coordinator', ...; '' for what is no longer there."""
    try:
        with open("/proc/%d/cmdline" % pid) as file:
            words = file.read().split("\0")
    except OSError:
        return ""
    index = words[words.index("--index") + 1] if "--index" in words else ""
    return ("%s %s" % (words[1] if len(words) > 1 else words[0], index)).strip()


def pss_kib(pid):
    """What a process uses, shared pages divided among those who share them; 0 for what is no longer there."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0

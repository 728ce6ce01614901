#include "collector/gym/strays.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"

#define NAME "TT_WORKER="

enum {
    ENVIRONMENT_MOST = 128 << 10,
    ROUNDS = 50
}; /* it is no wait: what was killed may have started another just before */

/*  A process number alone may be that of another collector, in a container that is seen from here. */
void gym_strays_mark(char out[GYM_MARK])
{
    static _Atomic uint32_t s_count;
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)tt_wall_ns();
    snprintf(out, GYM_MARK, NAME "%016llx.%u", (unsigned long long)number, atomic_fetch_add(&s_count, 1));
}

typedef struct {
    const char (*mark)[GYM_MARK];
    size_t count;
    char *text;
} look_t;

static bool s_is_one(const look_t *self, const char *entry)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->mark[i], entry) == 0)
            return true;
    return false;
}

static size_t s_read(pid_t pid, char *out)
{
    char path[64];
    size_t used = 0;
    ssize_t got;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < ENVIRONMENT_MOST && (got = read(fd, out + used, ENVIRONMENT_MOST - used)) > 0)
        used += (size_t)got;
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
    return used;
}

static bool s_is_stray(const look_t *self, pid_t pid)
{
    const size_t size = s_read(pid, self->text);
    for (const char *entry = self->text; entry < self->text + size; entry += strlen(entry) + 1)
        if (strncmp(entry, NAME, strlen(NAME)) == 0 && s_is_one(self, entry))
            return true;
    return false;
}

/*  Was there any? One that ends has no environment any more. */
static bool s_round(const look_t *self)
{
    bool any = false;
    DIR *proc = opendir("/proc");
    for (const struct dirent *entry; proc && (entry = readdir(proc));) {
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid > 1 && pid != getpid() && s_is_stray(self, pid))
            any |= kill(pid, SIGKILL) == 0;
    }
    if (proc)
        closedir(proc);
    return any;
}

void gym_strays_end(const char (*mark)[GYM_MARK], size_t count)
{
    look_t look = {mark, count, tt_new0(ENVIRONMENT_MOST + 1)};
    for (int round = 0; count && round < ROUNDS && s_round(&look); round++)
        poll(NULL, 0, 1);
    free(look.text);
}

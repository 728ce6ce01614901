#define TT_LOG_COMPONENT "net"
#include "common/net/accept.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/base/descriptors.h"
#include "common/base/log.h"

enum { PAUSE_MS = 10 };

static _Atomic uint64_t s_refused;

/*  The 1st, 2nd, 4th, 8th, ... is told: they come again and again. */
static void s_tell(int reserve)
{
    const uint64_t before = atomic_fetch_add(&s_refused, 1);
    if ((before & (before + 1)) == 0)
        log_warn("a connection was turned away (%" PRIu64 " so far): only files below %d may be opened for others; "
                 "end some clients, or raise the hard limit (ulimit -Hn)",
            before + 1, reserve);
}

__attribute__((visibility("default"))) int accept4(int fd, void *address, void *size, int flags)
{
    const int got = (int)syscall(SYS_accept4, fd, address, size, flags);
    if (got < 0 && errno != EMFILE && errno != ENFILE)
        return got;
    const int reserve = tt_descriptors_reserve();
    if (got >= 0 && got < reserve)
        return got;
    s_tell(reserve);
    if (got >= 0)
        close(got);
    else
        poll(NULL, 0, PAUSE_MS); /* it stays in the queue: we would be called again at once */
    errno = got >= 0 ? ECONNABORTED : EAGAIN;
    return -1;
}

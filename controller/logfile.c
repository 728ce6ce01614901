#include "controller/logfile.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"

#define NOTE_BEGIN "--- tutti: "
#define NOTE_END   " bytes are missing here: the log had become too large (TT_LOG_MB)\n"

/*  Of the limit; the newest part is a quarter of it. */
enum {
    MIB = 1 << 20,
    INITIAL_MB = 32,
    MOST_MB = 1 << 20,
    HEAD_MOST = 64 << 10,
    HEAD_SHARE = 16,
    TAIL_SHARE = 4,
    NOTE_MOST = 160
};

/* ---- the limit ----------------------------------------------------------------------------------------------------- */

/*  0: it is none. */
static uint64_t s_read(const char *text)
{
    char *end;
    if (!text || !*text)
        return INITIAL_MB;
    const unsigned long long mb = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return mb > 0 && mb <= MOST_MB && !*end ? mb : 0;
}

tt_status_t tt_logfile_check(void)
{
    const char *text = getenv("TT_LOG_MB");
    return s_read(text)
               ? TT_OK
               : tt_err(TT_CONFIG, "TT_LOG_MB: '%s' is not a number of MiB, 1 to %d: the most that a process's log has",
                     text, MOST_MB);
}

uint64_t tt_logfile_limit(void)
{
    const uint64_t mb = s_read(getenv("TT_LOG_MB"));
    return (mb ? mb : INITIAL_MB) * MIB;
}

/* ---- the line that says what is missing ----------------------------------------------------------------------------- */

/*  At the beginning of `text`? */
static bool s_is_note(const char *text, size_t size, tt_logfile_gap_t *out)
{
    char line[NOTE_MOST], *end;
    const char *newline = memchr(text, '\n', size < sizeof line - 1 ? size : sizeof line - 1);
    const size_t begin = strlen(NOTE_BEGIN);
    if (!newline || size < begin || memcmp(text, NOTE_BEGIN, begin) != 0)
        return false;
    const size_t length = (size_t)(newline + 1 - text);
    memcpy(line, text, length);
    line[length] = '\0';
    out->dropped = strtoull(line + begin, &end, 10);
    out->after = out->at + (off_t)length;
    return strcmp(end, NOTE_END) == 0 && out->dropped > 0;
}

static tt_logfile_gap_t s_find(const char *text, size_t size)
{
    tt_logfile_gap_t gap = {0};
    for (const char *at = text; at; at = memchr(at, '\n', size - (size_t)(at - text)), at = at ? at + 1 : NULL) {
        gap.at = at - text;
        if (s_is_note(at, size - (size_t)gap.at, &gap))
            return gap;
    }
    return (tt_logfile_gap_t){0};
}

/*  Where a limit would let it begin, and somewhat later: who wrote in between is before it. */
tt_logfile_gap_t tt_logfile_gap(int fd)
{
    const size_t most = 2 * HEAD_MOST;
    char *text = tt_new0(most);
    const ssize_t size = pread(fd, text, most, 0);
    const tt_logfile_gap_t gap = s_find(text, size > 0 ? (size_t)size : 0);
    free(text);
    return gap;
}

/* ---- trim -------------------------------------------------------------------------------------------------------------- */

/*  Whole lines of the beginning. */
static off_t s_head(int fd, uint64_t limit)
{
    const size_t most = limit / HEAD_SHARE < HEAD_MOST ? (size_t)limit / HEAD_SHARE : HEAD_MOST;
    char *text = tt_new0(most);
    const ssize_t size = pread(fd, text, most, 0);
    const char *last = size > 0 ? memrchr(text, '\n', (size_t)size) : NULL;
    const off_t head = last ? last + 1 - text : 0;
    free(text);
    return head;
}

typedef struct {
    char *text; /* with room for the line before it */
    size_t size;
    off_t from; /* where it lay */
} tail_t;

/*  Up to what is its end by now. */
static bool s_read_tail(int fd, off_t from, size_t room, tail_t *out)
{
    *out = (tail_t){.text = tt_new0(NOTE_MOST + room), .from = from};
    ssize_t got = 0;
    while (out->size < room &&
           (got = pread(fd, out->text + NOTE_MOST + out->size, room - out->size, from + (off_t)out->size)) > 0)
        out->size += (size_t)got;
    return got >= 0;
}

/*  Whole lines, if there are any. */
static void s_cut_tail(tail_t *self)
{
    const char *text = self->text + NOTE_MOST, *newline = memchr(text, '\n', self->size);
    const size_t cut = newline && newline + 1 < text + self->size ? (size_t)(newline + 1 - text) : 0;
    memmove(self->text + NOTE_MOST, text + cut, self->size - cut);
    self->size -= cut;
    self->from += (off_t)cut;
}

/*  In one write, between those of others. */
static void s_put(int fd, off_t head, uint64_t dropped, tail_t *tail)
{
    char note[NOTE_MOST];
    const size_t length = (size_t)snprintf(note, sizeof note, NOTE_BEGIN "%llu" NOTE_END, (unsigned long long)dropped);
    char *from = tail->text + NOTE_MOST - length;
    memcpy(from, note, length);
    if (ftruncate(fd, head) == 0)
        (void)tt_file_write(fd, from, length + tail->size, NULL); /* others may have filled the disk just now */
}

static void s_trim(int fd, off_t size, uint64_t limit)
{
    tt_logfile_gap_t gap = tt_logfile_gap(fd);
    if (!gap.dropped)
        gap.at = gap.after = s_head(fd, limit);
    const off_t newest = size - (off_t)(limit / TAIL_SHARE), from = newest > gap.after ? newest : gap.after;
    tail_t tail;
    struct stat now;
    if (s_read_tail(fd, from, (size_t)(limit / TAIL_SHARE) + (size_t)limit / 2, &tail) && fstat(fd, &now) == 0) {
        s_cut_tail(&tail);
        const uint64_t written = (uint64_t)(now.st_size - gap.after);
        s_put(fd, gap.at, gap.dropped + (written > tail.size ? written - tail.size : 0), &tail);
    }
    free(tail.text);
}

void tt_logfile_trim(const char *path, uint64_t limit)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size <= limit)
        return;
    const int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size > limit)
        s_trim(fd, info.st_size, limit);
    close(fd);
}

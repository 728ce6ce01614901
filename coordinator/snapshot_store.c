#define TT_LOG_COMPONENT "snapshot_store"
#include "coordinator/snapshot_store.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/snapshot/checkpoints.h"
#include "common/snapshot/snapshot.h"
#include "coordinator/state.h"

enum { PATH_ROOM = PATH_MAX + 128 };
static const size_t s_piece = 1 << 20; /* of LOADED */

void snapshot_store_init(snapshot_store_t *self)
{
    *self = (snapshot_store_t){.fd = -1};
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

#define ENDING ".part"

static void s_paths(const coordinator_t *self, const char *name, char *path, char *beside)
{
    snprintf(path, PATH_ROOM, "%s/" TT_CHECKPOINTS "/%s", self->root, name);
    snprintf(beside, PATH_ROOM, "%s/" TT_CHECKPOINTS "/.%s" ENDING, self->root, name);
}

static bool s_is_part(const char *name)
{
    const size_t length = strlen(name), ending = strlen(ENDING);
    return name[0] == '.' && length > ending && strcmp(name + length - ending, ENDING) == 0;
}

void snapshot_store_sweep(const coordinator_t *self)
{
    char folder[PATH_ROOM];
    snprintf(folder, sizeof folder, "%s/" TT_CHECKPOINTS, self->root);
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (s_is_part(entry->d_name))
            (void)unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
}

void snapshot_store_free(coordinator_t *self)
{
    char path[PATH_ROOM], beside[PATH_ROOM];
    if (self->snapshot_store.fd < 0)
        return;
    s_paths(self, self->snapshot_store.name, path, beside);
    close(self->snapshot_store.fd);
    unlink(beside);
    snapshot_store_init(&self->snapshot_store);
}

static tt_status_t s_begin(coordinator_t *self, const tt_msg_STORE_t *m)
{
    char folder[PATH_ROOM], path[PATH_ROOM], beside[PATH_ROOM];
    snapshot_store_free(self);
    TT_TRY(tt_checkpoints_open(self->root, folder, sizeof folder));
    s_paths(self, m->name, path, beside);
    const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return tt_err_errno(TT_IO, "%s", beside);
    self->snapshot_store = (snapshot_store_t){.fd = fd, .instance = m->instance, .size = m->size};
    tt_seal_begin(&self->snapshot_store.seal);
    snprintf(self->snapshot_store.name, sizeof self->snapshot_store.name, "%s", m->name);
    return TT_OK;
}

/*  Synced as it comes: all of a large one at its end would keep the coordinator from its peers for as long as the disk takes. */
static tt_status_t s_append(snapshot_store_t *snapshot_store, const char *bytes, size_t size)
{
    const uint64_t pieces = snapshot_store->offset / TT_FILE_PIECE;
    tt_seal_add(&snapshot_store->seal, bytes, size);
    bool written = tt_file_write(snapshot_store->fd, bytes, size, NULL);
    snapshot_store->offset += size;
    if (written && snapshot_store->offset / TT_FILE_PIECE != pieces)
        written = fdatasync(snapshot_store->fd) == 0;
    return written ? TT_OK : tt_err_errno(TT_IO, "checkpoints/%s", snapshot_store->name);
}

/*  What was damaged on its way gets no name: the one before it stays the newest. */
static tt_status_t s_check_whole(snapshot_store_t *snapshot_store)
{
    bool sealed = false;
    const tt_status_t status = tt_seal_end(&snapshot_store->seal, &sealed);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", snapshot_store->name);
    return sealed ? TT_OK : tt_err(TT_DATA, "%s: not a snapshot: no checksum where it belongs", snapshot_store->name);
}

static tt_status_t s_return_mean(const char *path, double *out)
{
    tt_snapshot_info_t info;
    TT_TRY(tt_snapshot_inspect(path, &info));
    *out = info.return_mean;
    tt_snapshot_info_free(&info);
    return TT_OK;
}

/*  A final one of an earlier life that can be gone on from stays, by its number, where one that cannot takes its
 *  place. */
static tt_status_t s_spare_final(const char *folder, const char *path, const char *beside)
{
    char name[TT_CHECKPOINT_NAME];
    tt_snapshot_info_t info;
    if (access(path, F_OK) != 0)
        return TT_OK;
    TT_TRY(tt_snapshot_inspect(beside, &info));
    const bool bare = info.bare;
    tt_snapshot_info_free(&info);
    if (!bare || tt_snapshot_inspect(path, &info) != TT_OK)
        return TT_OK;
    tt_checkpoint_name(name, info.update);
    const tt_status_t status = info.bare ? TT_OK : tt_checkpoint_alias(folder, TT_CHECKPOINT_FINAL, name);
    tt_snapshot_info_free(&info);
    return status;
}

/*  best: the sender knows of none that is better. Who leads now may not know what was best before: the folder is asked, too. */
static tt_status_t s_complete(coordinator_t *self, bool best)
{
    char folder[PATH_ROOM], path[PATH_ROOM], beside[PATH_ROOM];
    snapshot_store_t *snapshot_store = &self->snapshot_store;
    const bool only_best = strcmp(snapshot_store->name, TT_CHECKPOINT_BEST) == 0;
    double mean = 0;
    bool exceeds = true;
    TT_TRY(s_check_whole(snapshot_store));
    TT_TRY(tt_checkpoints_open(self->root, folder, sizeof folder));
    s_paths(self, snapshot_store->name, path, beside);
    if (best || only_best)
        TT_TRY(s_return_mean(beside, &mean));
    if (only_best)
        TT_TRY(tt_checkpoint_exceeds_best(folder, mean, &exceeds));
    if (!exceeds) {
        snapshot_store_free(self);
        return TT_OK;
    }
    if (strcmp(snapshot_store->name, TT_CHECKPOINT_FINAL) == 0)
        TT_TRY(s_spare_final(folder, path, beside));
    if (fsync(snapshot_store->fd) != 0 || rename(beside, path) != 0)
        return tt_err_errno(TT_IO, "%s", path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* the name, too; a file system that cannot is as good as one that does not */
        close(fd);
    }
    if (best && !only_best)
        TT_TRY(tt_checkpoint_alias_best(folder, snapshot_store->name, mean));
    uint64_t update = UINT64_MAX;
    tt_checkpoint_update(snapshot_store->name, &update);
    tt_checkpoints_keep(folder, self->cfg.checkpoint.keep, update, NULL); /* s_check_sender: of who leads */
    log_info("%s, %llu bytes", path, (unsigned long long)snapshot_store->size);
    close(snapshot_store->fd);
    snapshot_store_init(snapshot_store);
    return TT_OK;
}

/* ---- STORE ------------------------------------------------------------------------------------------------------------ */

/*  Before the first roster of a restarted coordinator we cannot know who leads, and one that does not lead any more will
 *  hear of it: no answer, it asks again or not. */
static tt_status_t s_check_sender(const coordinator_t *self, uint64_t instance)
{
    const peer_t *rank0 = roster_rank0(self->roster);
    return rank0 && rank0->instance == instance ? TT_OK : TT_AGAIN;
}

static tt_status_t s_check_store(const tt_msg_STORE_t *m, const tt_packet_t *packet)
{
    if (!m->name || (!tt_checkpoint_is_name(m->name) && strcmp(m->name, TT_CHECKPOINT_BEST) != 0))
        return tt_err(TT_DENIED, "'%.64s' is no name of a snapshot", m->name ? m->name : "");
    if (packet->frame_count != 1 || m->size == 0 || m->size > TT_SNAPSHOT_WIRE_MAX)
        return tt_err(
            TT_PROTOCOL, "STORE of %llu bytes with %zu frames", (unsigned long long)m->size, packet->frame_count);
    return TT_OK;
}

/*  *have: bytes of the file that are here. A piece that does not continue them is not taken: the sender looks at *have. */
static tt_status_t s_take(coordinator_t *self, const tt_msg_STORE_t *m, tt_packet_t *packet, uint64_t *have)
{
    snapshot_store_t *snapshot_store = &self->snapshot_store;
    TT_TRY(s_check_sender(self, m->instance));
    TT_TRY(s_check_store(m, packet));
    if (m->offset == 0)
        TT_TRY(s_begin(self, m));
    const bool same = snapshot_store->fd >= 0 && snapshot_store->instance == m->instance &&
                      snapshot_store->size == m->size && strcmp(snapshot_store->name, m->name) == 0;
    *have = same ? snapshot_store->offset : 0;
    const size_t size = zmq_msg_size(&packet->frame[0]);
    if (!same || m->offset != snapshot_store->offset || size > snapshot_store->size - snapshot_store->offset)
        return TT_OK;
    TT_TRY(s_append(snapshot_store, zmq_msg_data(&packet->frame[0]), size));
    *have = snapshot_store->offset;
    return snapshot_store->offset < snapshot_store->size ? TT_OK : s_complete(self, m->best);
}

static void s_store(coordinator_t *self, tt_sock_t *sock, tt_packet_t *packet)
{
    const tt_msg_STORE_t *m = &packet->msg.STORE;
    uint64_t have = 0;
    const tt_status_t status = s_take(self, m, packet, &have);
    if (status == TT_AGAIN)
        return;
    if (status != TT_OK) {
        log_warn("%s: snapshot %.64s not kept: %s", packet->peer, m->name ? m->name : "", tt_err_text());
        snapshot_store_free(self);
    }
    const tt_msg_STORED_t answer = TT_MSG(
        STORED, .name = m->name, .have = have, .refused = status == TT_OK ? NULL : (char *)(uintptr_t)tt_err_text());
    control_send(sock, packet->peer, &answer);
}

/* ---- LOAD ------------------------------------------------------------------------------------------------------------- */

/*  Nothing but what the newest roster tells rank 0 to load. */
static tt_status_t s_open_restore(const coordinator_t *self, const tt_msg_LOAD_t *m, int *fd, uint64_t *size)
{
    tt_msg_ROSTER_t roster;
    struct stat info;
    TT_TRY(s_check_sender(self, m->instance));
    roster_message(self->roster, &roster);
    if (!m->path || !roster.restore || strcmp(m->path, roster.restore) != 0)
        return tt_err(TT_DENIED, "'%.200s' is not what the roster names", m->path ? m->path : "");
    *fd = open(m->path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return tt_err_errno(TT_IO, "%s", m->path);
    if (fstat(*fd, &info) != 0 || info.st_size <= 0 || (uint64_t)info.st_size > TT_SNAPSHOT_WIRE_MAX) {
        close(*fd);
        return tt_err(TT_DATA, "%s: not a snapshot", m->path);
    }
    *size = (uint64_t)info.st_size;
    return TT_OK;
}

static void s_load(coordinator_t *self, tt_sock_t *sock, tt_packet_t *packet)
{
    const tt_msg_LOAD_t *m = &packet->msg.LOAD;
    int fd = -1;
    uint64_t size = 0;
    const tt_status_t status = s_open_restore(self, m, &fd, &size);
    if (status == TT_AGAIN)
        return;
    if (status != TT_OK) {
        log_warn("%s: %s", packet->peer, tt_err_text());
        control_send(sock, packet->peer, &TT_MSG(LOADED, .refused = (char *)(uintptr_t)tt_err_text()));
        return;
    }
    const uint64_t left = m->offset < size ? size - m->offset : 0;
    zmq_msg_t frame;
    tt_frame_new(&frame, left < s_piece ? (size_t)left : s_piece);
    const ssize_t got = pread(fd, zmq_msg_data(&frame), zmq_msg_size(&frame), (off_t)m->offset);
    close(fd);
    if (got == (ssize_t)zmq_msg_size(&frame)) {
        const tt_msg_LOADED_t answer = TT_MSG(LOADED, .offset = m->offset, .size = size);
        if (tt_sock_send(sock, packet->peer, &answer, &frame, 1) != TT_OK)
            log_debug("LOADED to %s: %s", packet->peer, tt_err_text());
    }
    tt_frame_close(&frame);
}

void snapshot_store_packet(coordinator_t *self, tt_sock_t *sock, tt_packet_t *packet)
{
    if (packet->msg.type == TT_MSG_STORE)
        s_store(self, sock, packet);
    else
        s_load(self, sock, packet);
}

#define TT_LOG_COMPONENT "keep"
#include "learner/keep.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"

enum { JOIN_S = 10 };

/*  A piece, or a snapshot. */
typedef struct job {
    struct job *next;
    uint32_t life; /* of another one it does not count */
    uint32_t era;
    tt_buf_t bytes;
    tt_piece_t piece;
    uint64_t covers; /* the batch after those of its last piece */
    bool is_snapshot;
    keep_snapshot_t snapshot;
    uint64_t disk;
    tt_status_t status;
    char text[512];
} job_t;

typedef struct {
    job_t *first, *last;
} queue_t;

/*  The file that is being written. */
typedef struct {
    int fd; /* -1: none */
    char name[TT_PIECE_FILE];
    uint64_t size;
    uint32_t era, number; /* of the next */
    uint64_t unsynced;
} file_t;

/*  What was in the folder, before anybody could take over; of files, and what we wrote ourselves. */
typedef struct {
    tt_checkpoint_updates_t snapshots;
    tt_piece_files_t files;
} found_t;

struct keep {
    /* the learner's thread's */
    tt_piece_t *piece; /* on disk, ascending */
    size_t pieces, room;
    uint64_t given; /* batches below it were given */
    uint64_t safe;  /* pieces of batches below it are those of a snapshot */
    uint32_t under_way;
    pthread_t thread;
    int fd;
    _Atomic uint64_t moved;

    /* under the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    queue_t todo, done;
    uint64_t waiting;      /* bytes in `todo` */
    uint32_t life;         /* the learner's thread alone writes it */
    found_t *anew;         /* NULL: the writer has it; else for its next job */
    tt_piece_files_t left; /* by others, for its next job as well */
    bool quit;
    bool ended; /* the thread has nothing of this left to do */

    /* the writer's */
    char *folder;
    uint64_t instance, file_bytes;
    file_t file;
    found_t found;
};

/*  Something came to the disk, or was done. */
static void s_move(void *ctx)
{
    keep_t *self = ctx;
    const uint64_t one = 1;
    atomic_fetch_add(&self->moved, 1);
    const ssize_t written = write(self->fd, &one, sizeof one);
    TT_CHECK(written == sizeof one);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------- */

static void s_push(queue_t *queue, job_t *job)
{
    job->next = NULL;
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
}

static job_t *s_pop(queue_t *queue)
{
    job_t *job = queue->first;
    if (!job)
        return NULL;
    queue->first = job->next;
    if (!queue->first)
        queue->last = NULL;
    return job;
}

static void s_free_job(job_t *job)
{
    tt_buf_free(&job->bytes);
    free(job);
}

static void s_free_all(queue_t *queue)
{
    for (job_t *job; (job = s_pop(queue));)
        s_free_job(job);
}

/* ---- the writer: files ------------------------------------------------------------------------------------------------ */

static tt_status_t s_fail(const keep_t *self, const char *name)
{
    return tt_err_errno(TT_IO, "%s/%s", self->folder, name);
}

static tt_status_t s_sync(keep_t *self)
{
    if (self->file.fd < 0 || !self->file.unsynced)
        return TT_OK;
    if (fdatasync(self->file.fd) != 0)
        return s_fail(self, self->file.name);
    self->file.unsynced = 0;
    return TT_OK;
}

static void s_close(keep_t *self)
{
    if (self->file.fd >= 0)
        close(self->file.fd);
    self->file.fd = -1;
    self->file.name[0] = '\0';
}

/*  Its name must outlive a power cut if that of a snapshot does. */
static tt_status_t s_sync_folder(const keep_t *self)
{
    const int fd = open(self->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return s_fail(self, "");
    const tt_status_t status = fsync(fd) == 0 ? TT_OK : s_fail(self, "");
    close(fd);
    return status;
}

static tt_status_t s_open(keep_t *self, uint32_t era)
{
    char path[4400];
    file_t *file = &self->file;
    TT_TRY(s_sync(self));
    s_close(self);
    tt_piece_name(file->name, era, self->instance, file->number++);
    snprintf(path, sizeof path, "%s/%s", self->folder, file->name);
    file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file->fd < 0)
        return s_fail(self, file->name);
    file->size = 0;
    file->era = era;
    tt_piece_files_add(&self->found.files, file->name);
    return s_sync_folder(self);
}

static tt_status_t s_append(keep_t *self, const tt_buf_t *bytes)
{
    file_t *file = &self->file;
    for (uint64_t done = 0; done < bytes->size;) {
        const ssize_t got = pwrite(file->fd, bytes->data + done, bytes->size - done, (off_t)(file->size + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return s_fail(self, file->name);
        done += (uint64_t)got;
    }
    file->size += bytes->size;
    file->unsynced += bytes->size;
    return file->unsynced < TT_FILE_PIECE ? TT_OK : s_sync(self); /* or all of it would wait for the snapshot */
}

/*  A disk that is full ends the run: others have to write on it, too. */
static tt_status_t s_check_space(const keep_t *self, uint64_t size)
{
    struct statvfs disk;
    if (statvfs(self->folder, &disk) != 0)
        return s_fail(self, "");
    const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left >= size + KEEP_SPARE)
        return TT_OK;
    return tt_err(TT_IO, "%s: the disk has %llu MB left, too little for the replay; 'tutti check' says what it takes",
        self->folder, (unsigned long long)(left / 1000000));
}

static tt_status_t s_write_piece(keep_t *self, job_t *job)
{
    file_t *file = &self->file;
    tt_piece_t *piece = &job->piece;
    TT_TRY(s_check_space(self, job->bytes.size));
    if (file->fd < 0 || file->era != job->era || file->size >= self->file_bytes)
        TT_TRY(s_open(self, job->era));
    memcpy(piece->file, file->name, sizeof piece->file);
    piece->offset = file->size;
    piece->bytes = job->bytes.size;
    tt_piece_hash(job->bytes.data, job->bytes.size, piece->hash);
    return s_append(self, &job->bytes);
}

static tt_status_t s_write_snapshot(keep_t *self, job_t *job)
{
    const keep_snapshot_t *what = &job->snapshot;
    char path[4400];
    TT_TRY(s_sync(self));
    snprintf(path, sizeof path, "%s/%s", self->folder, what->name);
    TT_TRY(tt_st_save(&job->bytes, path, true, (tt_progress_t){s_move, self}));
    if (what->best)
        TT_TRY(tt_checkpoint_alias_best(self->folder, what->name, what->return_mean));
    tt_checkpoints_keep(self->folder, what->keep, what->update, &self->found.snapshots);
    job->disk = tt_checkpoints_sweep(
        self->folder, what->update, &self->found.files, self->file.name[0] ? self->file.name : NULL);
    return TT_OK;
}

static void s_free_found(found_t *found)
{
    if (!found)
        return;
    tt_checkpoint_updates_free(&found->snapshots);
    tt_piece_files_free(&found->files);
    free(found);
}

static void s_add_files(tt_piece_files_t *to, const tt_piece_files_t *from)
{
    for (size_t i = 0; i < from->count; i++)
        tt_piece_files_add(to, from->name[i]);
}

/*  A file that was begun while the folder was looked at is ours all the same. */
static void s_take_anew(keep_t *self, found_t *anew)
{
    s_close(self);
    s_add_files(&anew->files, &self->found.files);
    const found_t before = self->found;
    self->found = *anew;
    *anew = before;
    s_free_found(anew);
}

static void s_take_found(keep_t *self)
{
    pthread_mutex_lock(&self->mutex);
    found_t *anew = self->anew;
    tt_piece_files_t left = self->left;
    self->anew = NULL;
    self->left = (tt_piece_files_t){0};
    pthread_mutex_unlock(&self->mutex);
    if (anew)
        s_take_anew(self, anew);
    s_add_files(&self->found.files, &left);
    tt_piece_files_free(&left);
}

/*  What no snapshot refers to makes room for others. */
static void s_do(keep_t *self, job_t *job)
{
    s_take_found(self);
    job->status = job->is_snapshot ? s_write_snapshot(self, job) : s_write_piece(self, job);
    if (job->status == TT_OK)
        return;
    snprintf(job->text, sizeof job->text, "%s", tt_err_text());
    s_close(self);
    tt_checkpoints_sweep(self->folder, job->snapshot.update, &self->found.files, NULL);
}

/* ---- the writer: its life ----------------------------------------------------------------------------------------------- */

static job_t *s_await(keep_t *self)
{
    job_t *job = NULL;
    pthread_mutex_lock(&self->mutex);
    while (!self->quit && !(job = s_pop(&self->todo)))
        pthread_cond_wait(&self->changed, &self->mutex);
    pthread_mutex_unlock(&self->mutex);
    return job;
}

static void s_give_back(keep_t *self, job_t *job)
{
    pthread_mutex_lock(&self->mutex);
    self->waiting -= job->bytes.size;
    tt_buf_free(&job->bytes);
    s_push(&self->done, job);
    s_move(self); /* who takes it has seen it counted */
    pthread_mutex_unlock(&self->mutex);
}

static bool s_counts(keep_t *self, const job_t *job)
{
    pthread_mutex_lock(&self->mutex);
    const bool counts = job->life == self->life;
    pthread_mutex_unlock(&self->mutex);
    return counts;
}

static void *s_live(void *ctx)
{
    keep_t *self = ctx;
    for (job_t *job; (job = s_await(self));) {
        if (s_counts(self, job))
            s_do(self, job);
        s_give_back(self, job);
    }
    pthread_mutex_lock(&self->mutex);
    self->ended = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

/* ---- make and end --------------------------------------------------------------------------------------------------------- */

static void s_free(keep_t *self)
{
    s_close(self);
    s_free_all(&self->todo);
    s_free_all(&self->done);
    tt_checkpoint_updates_free(&self->found.snapshots);
    tt_piece_files_free(&self->found.files);
    s_free_found(self->anew);
    tt_piece_files_free(&self->left);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
    if (self->fd >= 0)
        close(self->fd);
    free(self->piece);
    free(self->folder);
    free(self);
}

/*  On the learner's thread: at the writer's next job it may be too late. */
static void s_look(keep_t *self)
{
    found_t *anew = tt_new0(sizeof *anew);
    if (tt_checkpoints_list(self->folder, &anew->snapshots) != TT_OK ||
        tt_piece_files_list(self->folder, &anew->files) != TT_OK)
        log_warn("what lies there already, and nobody needs, stays: %s", tt_err_text());
    pthread_mutex_lock(&self->mutex);
    found_t *before = self->anew;
    self->anew = anew;
    pthread_mutex_unlock(&self->mutex);
    s_free_found(before);
}

tt_status_t keep_new(keep_t **self_p, const keep_cfg_t *cfg)
{
    keep_t *self = tt_new0(sizeof *self);
    self->folder = tt_strdup(cfg->folder);
    self->instance = cfg->instance;
    self->file_bytes = cfg->file_bytes;
    self->file.fd = -1;
    self->life = 1;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, NULL);
    s_look(self);
    self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int failed = self->fd < 0 ? errno : pthread_create(&self->thread, NULL, s_live, self);
    if (failed) {
        s_free(self);
        errno = failed;
        return tt_err_errno(TT_OS, "no thread to write the replay");
    }
    *self_p = self;
    return TT_OK;
}

/*  Not by pthread_timedjoin_np, which goes by the wall clock: somebody may set that meanwhile. false: it hangs in a write. */
static bool s_await_end(keep_t *self)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += JOIN_S;
    pthread_mutex_lock(&self->mutex);
    self->quit = true;
    pthread_cond_signal(&self->changed);
    while (!self->ended && pthread_cond_clockwait(&self->changed, &self->mutex, CLOCK_MONOTONIC, &until) == 0)
        ;
    const bool ended = self->ended;
    pthread_mutex_unlock(&self->mutex);
    return ended && pthread_join(self->thread, NULL) == 0;
}

void keep_destroy(keep_t **self_p)
{
    keep_t *self = *self_p;
    if (!self)
        return;
    if (s_await_end(self))
        s_free(self);
    else
        log_error("%s: a write does not come to its end; it is left behind", self->folder);
    *self_p = NULL;
}

int keep_fd(const keep_t *self)
{
    return self->fd;
}

/* ---- what is given ---------------------------------------------------------------------------------------------------------- */

/*  What is under way does not count: what a snapshot refers to is all there is. */
static void s_begin_life(keep_t *self)
{
    while (self->pieces && self->piece[self->pieces - 1].next > self->safe)
        self->pieces--;
    pthread_mutex_lock(&self->mutex);
    self->life++;
    pthread_mutex_unlock(&self->mutex);
    self->under_way = 0;
    self->given = self->pieces ? self->piece[self->pieces - 1].next : 0;
}

void keep_forget(keep_t *self)
{
    s_look(self);
    self->safe = 0;
    s_begin_life(self);
}

/*  Names of one process's files differ in era and number alone. */
static void s_add_of(tt_piece_files_t *to, const tt_piece_files_t *from, uint64_t instance)
{
    char whose[24];
    snprintf(whose, sizeof whose, "-%016" PRIx64 "-", instance);
    for (size_t i = 0; i < from->count; i++)
        if (strstr(from->name[i], whose))
            tt_piece_files_add(to, from->name[i]);
}

void keep_inherit(keep_t *self, uint64_t instance)
{
    tt_piece_files_t files = {0};
    if (tt_piece_files_list(self->folder, &files) != TT_OK)
        log_warn("what the leader before us wrote, and nobody needs, stays: %s", tt_err_text());
    pthread_mutex_lock(&self->mutex);
    s_add_of(&self->left, &files, instance);
    pthread_mutex_unlock(&self->mutex);
    tt_piece_files_free(&files);
}

static void s_add_piece(keep_t *self, const tt_piece_t *piece)
{
    if (self->pieces == self->room) {
        self->room = self->room ? 2 * self->room : 64;
        self->piece = tt_realloc(self->piece, tt_mul(self->room, sizeof *self->piece));
    }
    self->piece[self->pieces++] = *piece;
}

void keep_adopt(keep_t *self, const tt_piece_t *piece, size_t pieces)
{
    keep_forget(self);
    for (size_t i = 0; i < pieces; i++)
        s_add_piece(self, &piece[i]);
    self->safe = pieces ? piece[pieces - 1].next : 0;
    s_begin_life(self);
}

uint64_t keep_next(const keep_t *self, uint64_t oldest)
{
    return self->given > oldest ? self->given : oldest;
}

uint64_t keep_moved(const keep_t *self)
{
    return atomic_load(&self->moved);
}

bool keep_has_room(const keep_t *self)
{
    keep_t *writable = (keep_t *)(uintptr_t)self;
    pthread_mutex_lock(&writable->mutex);
    const bool room = self->waiting < KEEP_ROOM;
    pthread_mutex_unlock(&writable->mutex);
    return room;
}

uint32_t keep_under_way(const keep_t *self)
{
    return self->under_way;
}

static void s_give(keep_t *self, const job_t *like, tt_buf_t *bytes)
{
    job_t *job = tt_new0(sizeof *job);
    *job = *like;
    job->bytes = *bytes;
    tt_buf_init(bytes, 0);
    self->under_way++;
    pthread_mutex_lock(&self->mutex);
    job->life = self->life;
    self->waiting += job->bytes.size;
    s_push(&self->todo, job);
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
}

void keep_piece(keep_t *self, tt_buf_t *bytes, uint32_t era, uint64_t update, uint64_t first, uint64_t next)
{
    s_give(self, &(job_t){.era = era, .snapshot = {.update = update}, .piece = {.first = first, .next = next}}, bytes);
    self->given = next;
}

void keep_snapshot(keep_t *self, tt_buf_t *bytes, const keep_snapshot_t *what)
{
    const uint64_t covers = self->pieces ? self->piece[self->pieces - 1].next : 0;
    s_give(self, &(job_t){.is_snapshot = true, .snapshot = *what, .covers = covers}, bytes);
}

/* ---- what comes back ---------------------------------------------------------------------------------------------------------- */

const tt_piece_t *keep_pieces(keep_t *self, uint64_t oldest, size_t *count)
{
    size_t dead = 0;
    while (dead < self->pieces && self->piece[dead].next <= oldest)
        dead++;
    self->pieces -= dead;
    if (dead && self->pieces)
        memmove(self->piece, self->piece + dead, self->pieces * sizeof *self->piece);
    *count = self->pieces;
    return self->piece;
}

static job_t *s_done(keep_t *self)
{
    pthread_mutex_lock(&self->mutex);
    job_t *job = s_pop(&self->done);
    pthread_mutex_unlock(&self->mutex);
    return job;
}

/*  TT_AGAIN: nothing that the caller would have to know. */
static tt_status_t s_take(keep_t *self, const job_t *job, keep_snapshot_t *out, uint64_t *disk)
{
    if (job->life != self->life)
        return TT_AGAIN;
    if (job->status != TT_OK) {
        s_begin_life(self);
        return tt_err(job->status, "%s", job->text);
    }
    self->under_way--;
    if (!job->is_snapshot) {
        s_add_piece(self, &job->piece);
        return TT_AGAIN;
    }
    self->safe = job->covers;
    *out = job->snapshot;
    *disk = job->disk;
    return TT_OK;
}

tt_status_t keep_take(keep_t *self, keep_snapshot_t *out, uint64_t *disk)
{
    tt_status_t status = TT_AGAIN;
    for (job_t *job; status == TT_AGAIN && (job = s_done(self));) {
        status = s_take(self, job, out, disk);
        s_free_job(job);
    }
    return status;
}

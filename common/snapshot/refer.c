/*  refer - the pieces that a snapshot refers to, as its arrays have them, and which files that makes. Nothing in them is believed. */
#define TT_LOG_COMPONENT "checkpoint"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/snapshot/checkpoints.h"
#include "common/snapshot/names.h"
#include "common/snapshot/parts.h"

/*  Three arrays that fit together. */
typedef struct {
    const tt_st_array_t *files, *pieces, *hashes;
} arrays_t;

static bool s_is_table(const tt_st_array_t *array, tt_st_type_t type, uint64_t columns, uint64_t most)
{
    return array && array->type == type && array->rank == 2 && array->shape[1] == columns && array->shape[0] >= 1 &&
           array->shape[0] <= most && array->bytes == array->shape[0] * columns * tt_st_size(type);
}

static tt_status_t s_find(const tt_st_t *file, arrays_t *out)
{
    *out = (arrays_t){tt_st_find(file, NAME_FILES), tt_st_find(file, NAME_PIECES), tt_st_find(file, NAME_HASHES)};
    if (!out->files && !out->pieces && !out->hashes)
        return TT_OK;
    if (!s_is_table(out->files, TT_ST_U8, TT_PIECE_FILE, TT_PIECES_MAX) ||
        !s_is_table(out->pieces, TT_ST_I64, PIECE_NUMBERS, TT_PIECES_MAX) ||
        !s_is_table(out->hashes, TT_ST_U8, TT_PIECE_HASH, TT_PIECES_MAX) ||
        out->hashes->shape[0] != out->pieces->shape[0])
        return tt_err(TT_DATA, NAME_PIECES ", " NAME_FILES " and " NAME_HASHES " do not fit together");
    return TT_OK;
}

static tt_status_t s_piece(const arrays_t *arrays, size_t i, tt_piece_t *out)
{
    int64_t number[PIECE_NUMBERS];
    memcpy(number, (const char *)arrays->pieces->data + i * sizeof number, sizeof number);
    for (int k = 0; k < PIECE_NUMBERS; k++)
        if (number[k] < 0)
            return tt_err(TT_DATA, NAME_PIECES ": a number is negative");
    if ((uint64_t)number[0] >= arrays->files->shape[0] || number[3] >= number[4] || number[2] == 0)
        return tt_err(TT_DATA, NAME_PIECES ": piece %zu cannot be", i);
    const char *name = (const char *)arrays->files->data + number[0] * TT_PIECE_FILE;
    if (!memchr(name, 0, TT_PIECE_FILE) || !tt_piece_is_name(name))
        return tt_err(TT_DATA, NAME_FILES ": '%.*s' is no name of a replay's file", TT_PIECE_FILE, name);
    *out = (tt_piece_t){.offset = (uint64_t)number[1],
        .bytes = (uint64_t)number[2],
        .first = (uint64_t)number[3],
        .next = (uint64_t)number[4]};
    snprintf(out->file, sizeof out->file, "%s", name);
    memcpy(out->hash, (const char *)arrays->hashes->data + i * TT_PIECE_HASH, TT_PIECE_HASH);
    return TT_OK;
}

tt_status_t tt_snapshot_pieces(const tt_st_t *file, tt_piece_t **out, size_t *count)
{
    arrays_t arrays;
    TT_TRY(s_find(file, &arrays));
    const size_t pieces = arrays.pieces ? arrays.pieces->shape[0] : 0;
    tt_piece_t *piece = tt_array0(pieces, sizeof *piece);
    for (size_t i = 0; i < pieces; i++) {
        const tt_status_t status = s_piece(&arrays, i, &piece[i]);
        if (status != TT_OK) {
            free(piece);
            return status;
        }
    }
    *out = piece;
    *count = pieces;
    return TT_OK;
}

/* ---- files that are referred to, and those that are not ----------------------------------------------------------------- */

void tt_piece_files_add(tt_piece_files_t *self, const char *name)
{
    if (tt_piece_files_has(self, name))
        return;
    self->name = tt_realloc(self->name, tt_mul(self->count + 1, sizeof *self->name));
    snprintf(self->name[self->count++], TT_PIECE_FILE, "%.*s", TT_PIECE_FILE - 1, name);
}

bool tt_piece_files_has(const tt_piece_files_t *self, const char *name)
{
    for (size_t i = self->count; i-- > 0;)
        if (strcmp(self->name[i], name) == 0)
            return true;
    return false;
}

void tt_piece_files_free(tt_piece_files_t *self)
{
    free(self->name);
    *self = (tt_piece_files_t){0};
}

static void s_list(void *files, const char *name)
{
    if (tt_piece_is_name(name))
        tt_piece_files_add(files, name);
}

tt_status_t tt_piece_files_list(const char *folder, tt_piece_files_t *out)
{
    return snapshot_each(folder, s_list, out);
}

static tt_status_t s_refers(const char *path, tt_piece_files_t *out)
{
    tt_st_t *file = NULL;
    tt_piece_t *piece = NULL;
    size_t count = 0;
    TT_TRY(tt_snapshot_open_file(&file, path));
    const tt_status_t status = tt_snapshot_pieces(file, &piece, &count);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(piece[i].file, piece[i - 1].file) != 0)
            tt_piece_files_add(out, piece[i].file);
    free(piece);
    tt_st_destroy(&file);
    return status;
}

/*  What the newest that can be gone on from refer to. One that is damaged refers to nothing; of one that could not be read
 *  nobody knows. */
static tt_status_t s_need(const char *folder, uint64_t update, tt_piece_files_t *out)
{
    char path[4400], name[TT_CHECKPOINT_NAME];
    size_t left = 0, newest = 0;
    tt_status_t status = TT_OK;
    while (left < TT_CHECKPOINTS_LEAST && (status = snapshot_nth(folder, update, newest++, name)) == TT_OK) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        status = s_refers(path, out);
        if (status != TT_OK && !snapshot_is_lost(status))
            return status;
        left += status == TT_OK;
    }
    return snapshot_is_lost(status) ? TT_OK : status;
}

static uint64_t s_size(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

uint64_t tt_checkpoints_sweep(const char *folder, uint64_t update, tt_piece_files_t *files, const char *open)
{
    char path[4400];
    tt_piece_files_t needed = {0};
    uint64_t bytes = 0;
    size_t kept = 0;
    const bool known = s_need(folder, update, &needed) == TT_OK;
    if (!known)
        log_warn("no file of a replay is removed: which are needed is not known: %s", tt_err_text());
    for (size_t i = 0; i < files->count; i++) {
        const char *name = files->name[i];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        const bool stays = !known || tt_piece_files_has(&needed, name) || (open && strcmp(open, name) == 0);
        if (!stays && (unlink(path) == 0 || errno == ENOENT))
            continue;
        bytes += s_size(path);
        memmove(files->name[kept++], name, TT_PIECE_FILE);
    }
    files->count = kept;
    tt_piece_files_free(&needed);
    return bytes;
}

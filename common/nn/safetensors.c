#include "common/nn/safetensors.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/beside.h"
#include "common/base/file.h"
#include "common/base/mem.h"

enum { ARRAYS_MAX = 4096, META_MAX = 4096 };

static const struct {
    const char *name;
    size_t bytes;
} s_types[] = {
    [TT_ST_F32] = {"F32", 4},
    [TT_ST_F64] = {"F64", 8},
    [TT_ST_I32] = {"I32", 4},
    [TT_ST_I64] = {"I64", 8},
    [TT_ST_U8] = {"U8", 1},
};

struct tt_st {
    tt_st_array_t *arrays; /* in the order of the file's data */
    size_t array_count;
    tt_st_meta_t *meta;
    size_t meta_count;
    char *data; /* every array aligned to 64 bytes */
};

size_t tt_st_size(tt_st_type_t type)
{
    return s_types[type].bytes;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/*  Elements * element size; false when it overflows. */
static bool s_array_bytes(const tt_st_array_t *array, size_t *out)
{
    size_t bytes = s_types[array->type].bytes;
    for (uint32_t i = 0; i < array->rank; i++)
        if (array->shape[i] > SIZE_MAX || !tt_mul_ok(bytes, (size_t)array->shape[i], &bytes))
            return false;
    *out = bytes;
    return true;
}

static json_t *s_describe_array(const tt_st_array_t *array, size_t begin)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < array->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)array->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", s_types[array->type].name, "shape", shape, "data_offsets",
        (json_int_t)begin, (json_int_t)(begin + array->bytes));
}

static json_t *s_describe_meta(const tt_st_meta_t *meta, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, meta[i].key, json_string(meta[i].value));
    return object;
}

static tt_status_t s_check_arrays(const tt_st_array_t *arrays, size_t count)
{
    if (count > ARRAYS_MAX)
        return tt_err(TT_INVALID, "safetensors: %zu arrays; at most %d are possible", count, ARRAYS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 0;
        if (arrays[i].rank > 4 || !s_array_bytes(&arrays[i], &bytes) || bytes != arrays[i].bytes)
            return tt_err(TT_INVALID, "safetensors: '%s': shape and size do not agree", arrays[i].name);
    }
    return TT_OK;
}

/*  The header as text, padded with blanks so that the data begin at a multiple of 8. */
static tt_status_t s_add_header(tt_buf_t *out, json_t *header)
{
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text)
        return tt_err(TT_INVALID, "safetensors: a name or a metadata value is not UTF-8");
    const size_t length = strlen(text), padded = tt_align(length, 8);
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    tt_status_t status = padded > TT_ST_HEADER_MAX ? tt_err(TT_INVALID, "safetensors: the header exceeds 16 MiB")
                                                   : tt_buf_add(out, size, sizeof size);
    if (status == TT_OK)
        status = tt_buf_add(out, text, length);
    if (status == TT_OK)
        status = tt_buf_add(out, "       ", padded - length);
    free(text);
    return status;
}

tt_status_t tt_st_encode(
    tt_buf_t *out, const tt_st_array_t *arrays, size_t array_count, const tt_st_meta_t *meta, size_t meta_count)
{
    TT_TRY(s_check_arrays(arrays, array_count));
    json_t *header = json_object();
    size_t at = 0;
    bool fits = true;
    if (meta_count)
        fits = json_object_set_new(header, "__metadata__", s_describe_meta(meta, meta_count)) == 0;
    for (size_t i = 0; i < array_count; i++) {
        fits = fits && strcmp(arrays[i].name, "__metadata__") != 0 && json_object_get(header, arrays[i].name) == NULL &&
               json_object_set_new(header, arrays[i].name, s_describe_array(&arrays[i], at)) == 0;
        at += arrays[i].bytes;
    }
    tt_status_t status = fits ? s_add_header(out, header)
                              : tt_err(TT_INVALID, "safetensors: an array's name is not UTF-8, taken, or there twice");
    json_decref(header);
    for (size_t i = 0; status == TT_OK && i < array_count; i++)
        status = tt_buf_add(out, arrays[i].data, arrays[i].bytes);
    return status;
}

/*  A rename lasts through a power cut only when its directory was synced too. */
static tt_status_t s_sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : tt_strdup(".");
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd >= 0 && fsync(fd) == 0;
    const tt_status_t status = done ? TT_OK : tt_err_errno(TT_IO, "%s: cannot sync", dir);
    if (fd >= 0)
        close(fd);
    free(dir);
    return status;
}

/*  Under a name of its own until it is whole: somebody else may write the same file, as a learner that was overtaken does. */
tt_status_t tt_st_save(const tt_buf_t *bytes, const char *path, bool sync, tt_progress_t progress)
{
    tt_beside_t beside;
    tt_status_t status = tt_beside_named(&beside, path, 0644);
    if (status != TT_OK)
        return tt_err_wrap(TT_IO, "cannot create");
    if (!tt_file_write_pieces(beside.fd, bytes->data, bytes->size, sync, progress))
        status = tt_err_errno(TT_IO, "%s: cannot write", path);
    else if (sync && fsync(beside.fd) != 0)
        status = tt_err_errno(TT_IO, "%s: cannot sync", path);
    else if (tt_beside_finish(&beside, true) != TT_OK)
        status = tt_err_wrap(TT_IO, "cannot rename");
    tt_beside_drop(&beside);
    return status == TT_OK && sync ? s_sync_directory_of(path) : status;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct {
    size_t begin, end;
    tt_st_array_t array;
} entry_t;

static tt_status_t s_parse_type(const char *name, const json_t *value, tt_st_type_t *out)
{
    const char *type = json_string_value(value);
    for (size_t i = 0; type && i < TT_COUNT(s_types); i++)
        if (strcmp(type, s_types[i].name) == 0) {
            *out = (tt_st_type_t)i;
            return TT_OK;
        }
    return tt_err(TT_DATA, "safetensors: '%s' has type %.16s; F32, F64, I32, I64 and U8 are read", name,
        type ? type : "(not a text)");
}

static tt_status_t s_parse_shape(const char *name, const json_t *value, tt_st_array_t *out)
{
    if (!json_is_array(value) || json_array_size(value) > 4)
        return tt_err(TT_DATA, "safetensors: '%s': shape is not a list of at most 4 numbers", name);
    out->rank = (uint32_t)json_array_size(value);
    for (uint32_t i = 0; i < out->rank; i++) {
        const json_t *side = json_array_get(value, i);
        if (!json_is_integer(side) || json_integer_value(side) < 0)
            return tt_err(TT_DATA, "safetensors: '%s': shape[%u] is not a count", name, i);
        out->shape[i] = (uint64_t)json_integer_value(side);
    }
    return TT_OK;
}

static tt_status_t s_parse_offsets(const char *name, const json_t *value, size_t data_size, entry_t *out)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return tt_err(TT_DATA, "safetensors: '%s': data_offsets is not a pair of numbers", name);
    const json_int_t from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || (uint64_t)to > data_size)
        return tt_err(TT_DATA,
            "safetensors: '%s': data at %lld to %lld, but the file holds %zu bytes of data "
            "(truncated?)",
            name, (long long)from, (long long)to, data_size);
    out->begin = (size_t)from;
    out->end = (size_t)to;
    return TT_OK;
}

static tt_status_t s_parse_entry(const char *name, const json_t *value, size_t data_size, entry_t *out)
{
    tt_st_array_t *array = &out->array;
    if (strlen(name) >= sizeof array->name)
        return tt_err(
            TT_DATA, "safetensors: the array name '%.40s...' exceeds %zu bytes", name, sizeof array->name - 1);
    strcpy(array->name, name);
    TT_TRY(s_parse_type(name, json_object_get(value, "dtype"), &array->type));
    TT_TRY(s_parse_shape(name, json_object_get(value, "shape"), array));
    TT_TRY(s_parse_offsets(name, json_object_get(value, "data_offsets"), data_size, out));
    if (!s_array_bytes(array, &array->bytes) || array->bytes != out->end - out->begin)
        return tt_err(TT_DATA, "safetensors: '%s': its shape does not fit its %zu bytes", name, out->end - out->begin);
    return TT_OK;
}

static tt_status_t s_parse_meta(tt_st_t *self, const json_t *object)
{
    if (!json_is_object(object) || json_object_size(object) > META_MAX)
        return tt_err(TT_DATA, "safetensors: __metadata__ is not an object of at most %d texts", META_MAX);
    self->meta = tt_array0(json_object_size(object), sizeof *self->meta);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        tt_st_meta_t *meta = &self->meta[self->meta_count];
        if (!json_is_string(value) || strlen(key) >= sizeof meta->key)
            return tt_err(TT_DATA, "safetensors: metadata '%.40s' is not a text, or its key exceeds %zu bytes", key,
                sizeof meta->key - 1);
        strcpy(meta->key, key);
        meta->value = tt_strdup(json_string_value(value));
        self->meta_count++;
    }
    return TT_OK;
}

static int s_by_begin(const void *a, const void *b)
{
    const entry_t *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/*  The format allows neither holes nor overlaps: sorted, each array begins where the one before ends. */
static tt_status_t s_check_cover(const entry_t *entries, size_t count, size_t data_size)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].begin != at)
            return tt_err(TT_DATA, "safetensors: '%s' begins at byte %zu, not at %zu where the array before it ends",
                entries[i].array.name, entries[i].begin, at);
        at = entries[i].end;
    }
    if (at != data_size)
        return tt_err(TT_DATA, "safetensors: %zu bytes behind the last array", data_size - at);
    return TT_OK;
}

static void s_copy_arrays(tt_st_t *self, const entry_t *entries, size_t count, const char *data)
{
    size_t room = 0;
    for (size_t i = 0; data && i < count; i++)
        room += tt_align(entries[i].array.bytes, 64);
    self->data = tt_aligned0(room);
    self->arrays = tt_array0(count, sizeof *self->arrays);
    self->array_count = count;
    char *at = self->data;
    for (size_t i = 0; i < count; i++) {
        self->arrays[i] = entries[i].array;
        if (!data)
            continue;
        self->arrays[i].data = memcpy(at, data + entries[i].begin, entries[i].array.bytes);
        at += tt_align(entries[i].array.bytes, 64);
    }
}

static tt_status_t s_parse_entries(tt_st_t *self, json_t *header, entry_t *entries, const char *data, size_t data_size)
{
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            TT_TRY(s_parse_meta(self, value));
        else
            TT_TRY(s_parse_entry(name, value, data_size, &entries[count++]));
    }
    qsort(entries, count, sizeof *entries, s_by_begin);
    TT_TRY(s_check_cover(entries, count, data_size));
    s_copy_arrays(self, entries, count, data);
    return TT_OK;
}

static tt_status_t s_parse_header(tt_st_t *self, const char *text, size_t length, const char *data, size_t data_size)
{
    json_error_t error;
    json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return tt_err(TT_DATA, "safetensors: the header is not JSON: %s at byte %d", error.text, error.position);
    tt_status_t status;
    if (!json_is_object(header) || json_object_size(header) > ARRAYS_MAX + 1) {
        status = tt_err(TT_DATA, "safetensors: the header is not an object of at most %d arrays", ARRAYS_MAX);
    } else {
        entry_t *entries = tt_array0(json_object_size(header), sizeof *entries);
        status = s_parse_entries(self, header, entries, data, data_size);
        free(entries);
    }
    json_decref(header);
    return status;
}

static uint64_t s_header_length(const unsigned char *in)
{
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)in[i] << (8 * i);
    return length;
}

size_t tt_st_header_size(const void *bytes, size_t size)
{
    const uint64_t length = size < 8 ? 0 : s_header_length(bytes);
    return 8 + (length < TT_ST_HEADER_MAX ? (size_t)length : TT_ST_HEADER_MAX);
}

/*  here: how much of the file is in memory; without data, its header will do. */
static tt_status_t s_decode(tt_st_t **self_p, const void *bytes, size_t here, uint64_t file_size, bool with_data)
{
    if (here < 8)
        return tt_err(TT_DATA, "safetensors: %zu bytes are too few for a file", here);
    const uint64_t length = s_header_length(bytes);
    if (length > TT_ST_HEADER_MAX)
        return tt_err(TT_DATA, "safetensors: a header of %llu bytes exceeds 16 MiB; this is another kind of file",
            (unsigned long long)length);
    if (length > here - 8)
        return tt_err(TT_DATA, "safetensors: a header of %llu bytes in a file of %llu (truncated?)",
            (unsigned long long)length, (unsigned long long)file_size);
    tt_st_t *self = tt_new0(sizeof *self);
    const char *text = (const char *)bytes + 8, *data = with_data ? text + length : NULL;
    const tt_status_t status = s_parse_header(self, text, (size_t)length, data, (size_t)(file_size - 8 - length));
    if (status != TT_OK)
        tt_st_destroy(&self);
    else
        *self_p = self;
    return status;
}

tt_status_t tt_st_decode(tt_st_t **self_p, const void *bytes, size_t size)
{
    return s_decode(self_p, bytes, size, size, true);
}

tt_status_t tt_st_decode_header(tt_st_t **self_p, const void *bytes, size_t size, uint64_t file_size)
{
    return s_decode(self_p, bytes, size < file_size ? size : (size_t)file_size, file_size, false);
}

void tt_st_destroy(tt_st_t **self_p)
{
    tt_st_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->meta_count; i++)
        free(self->meta[i].value);
    free(self->meta);
    free(self->arrays);
    free(self->data);
    free(self);
    *self_p = NULL;
}

const tt_st_array_t *tt_st_find(const tt_st_t *self, const char *name)
{
    for (size_t i = 0; i < self->array_count; i++)
        if (strcmp(self->arrays[i].name, name) == 0)
            return &self->arrays[i];
    return NULL;
}

const char *tt_st_meta(const tt_st_t *self, const char *key)
{
    for (size_t i = 0; i < self->meta_count; i++)
        if (strcmp(self->meta[i].key, key) == 0)
            return self->meta[i].value;
    return NULL;
}

const tt_st_array_t *tt_st_arrays(const tt_st_t *self, size_t *count)
{
    *count = self->array_count;
    return self->arrays;
}

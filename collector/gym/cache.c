#include "collector/gym/cache.h"
#include <dirent.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/mem.h"

extern char **environ;

enum {
    FORMAT = 1,
    HASH = 16,
    HASH_TEXT = 2 * HASH + 1,
    FILES_MAX = 64,
    FILE_MAX = 1 << 20,   /* bytes of one */
    ROOM_MAX = 4 << 20,   /* of a state: python/tutti_env/trial.py */
    FRESH_NS = 2000000000 /* so new a file may change once more within what its clock can tell */
};
static const char s_suffix[] = ".json";

/* ---- the question ------------------------------------------------------------------------------------------------------- */

static bool s_counts(const char *assignment)
{
    static const char *const begins[] = {"PYTHON", "LD_", "GYM", "ALE_", "MUJOCO_", "SDL_"};
    for (size_t i = 0; i < TT_COUNT(begins); i++)
        if (strncmp(assignment, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static json_t *s_environment(void)
{
    json_t *out = json_array();
    for (char **at = environ; at && *at; at++)
        if (s_counts(*at))
            json_array_append_new(out, tt_json_text(*at));
    return out;
}

static json_t *s_host(void)
{
    struct utsname host;
    if (uname(&host) != 0)
        return json_null();
    return json_pack("[s, s, s]", host.nodename, host.release, host.machine);
}

/*  It may be a link or a script that leads to another one tomorrow. */
static json_t *s_program(const char *path)
{
    struct stat info = {0};
    char *real = realpath(path, NULL);
    stat(path, &info);
    json_t *out = json_pack("[s, s, I, I, I]", path, real ? real : "", (json_int_t)info.st_mtim.tv_sec,
        (json_int_t)info.st_mtim.tv_nsec, (json_int_t)info.st_size);
    free(real);
    return out ? out : json_null();
}

json_t *gym_cache_question(const json_t *asked, const char *python, const char *package)
{
    json_t *what = json_copy((json_t *)(uintptr_t)asked);
    json_object_del(what, "state"); /* that is part of the answer */
    char *here = json_array_size(json_object_get(what, "path")) ? NULL : getcwd(NULL, 0);
    json_t *out = json_object();
    json_object_set_new(out, "asked", what);
    json_object_set_new(out, "python", s_program(python));
    json_object_set_new(out, "tutti", json_string(TT_VERSION));
    json_object_set_new(out, "package", tt_json_text(package));
    json_object_set_new(out, "folder", tt_json_text(here ? here : ""));
    json_object_set_new(out, "environment", s_environment());
    json_object_set_new(out, "host", s_host());
    free(here);
    return out;
}

/* ---- where it lies ------------------------------------------------------------------------------------------------------ */

static void s_hash(char out[HASH_TEXT], const char *text)
{
    unsigned char hash[HASH];
    crypto_generichash(hash, sizeof hash, (const unsigned char *)text, strlen(text), NULL, 0);
    sodium_bin2hex(out, HASH_TEXT, hash, sizeof hash);
}

/*  NULL: there is no home, or whoever is asked for pictures makes its env otherwise. Caller frees. */
static char *s_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (getenv("TUTTI_FRAMES"))
        return NULL;
    if (cache && cache[0] == '/')
        return tt_sprintf("%s/tutti/gym", cache);
    return home && home[0] == '/' ? tt_sprintf("%s/.cache/tutti/gym", home) : NULL;
}

static bool s_is_ours(const char *path, mode_t kind)
{
    struct stat info;
    return lstat(path, &info) == 0 && (info.st_mode & S_IFMT) == kind && info.st_uid == geteuid() &&
           !(info.st_mode & 022);
}

static char *s_name(const json_t *question)
{
    char hash[HASH_TEXT];
    char *text = json_dumps(question, JSON_COMPACT | JSON_SORT_KEYS);
    TT_CHECK(text);
    s_hash(hash, text);
    free(text);
    return tt_sprintf("%s%s", hash, s_suffix);
}

/* ---- what it says ------------------------------------------------------------------------------------------------------- */

static bool s_is_unchanged(const json_t *source)
{
    struct stat info;
    const char *path = json_string_value(json_array_get(source, 0));
    if (!path || stat(path, &info) != 0)
        return false;
    const json_int_t changed = (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return json_integer_value(json_array_get(source, 1)) == changed &&
           json_integer_value(json_array_get(source, 2)) == (json_int_t)info.st_size;
}

static bool s_are_unchanged(const json_t *sources)
{
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (!s_is_unchanged(json_array_get(sources, i)))
            return false;
    return json_array_size(sources) > 0;
}

static bool s_are_settled(const json_t *sources)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const json_int_t limit = (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec - FRESH_NS;
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (json_integer_value(json_array_get(json_array_get(sources, i), 1)) > limit)
            return false;
    return json_array_size(sources) > 0;
}

static bool s_take_verdict(gym_verdict_t *out, const json_t *root)
{
    const char *saves = json_string_value(json_object_get(root, "saves"));
    const char *why = json_string_value(json_object_get(root, "why"));
    if (!saves || !why || strlen(saves) >= sizeof out->saves || strlen(why) >= sizeof out->why)
        return false;
    json_t *state = gym_saves(saves);
    const json_int_t room = json_integer_value(json_object_get(state, "room"));
    const bool is_kind = *json_string_value(json_object_get(state, "kind"));
    json_decref(state);
    *out = (gym_verdict_t){.saves = ""};
    snprintf(out->saves, sizeof out->saves, "%s", saves);
    snprintf(out->why, sizeof out->why, "%s", why);
    return is_kind ? room > 0 && room <= ROOM_MAX : !*saves || strcmp(saves, "no") == 0;
}

static bool s_take(gym_answer_t *out, const json_t *root, const json_t *question)
{
    json_t *about = json_object_get(root, "about");
    if (json_integer_value(json_object_get(root, "format")) != FORMAT || !json_is_object(about) ||
        !json_equal(json_object_get(root, "question"), question) || !s_take_verdict(&out->verdict, root) ||
        !s_are_unchanged(json_object_get(about, "sources")))
        return false;
    out->about = json_incref(about);
    return true;
}

/*  A line with the hash of all that follows. */
static bool s_read(gym_answer_t *out, const char *path, const json_t *question)
{
    char hash[HASH_TEXT];
    tt_buf_t file;
    tt_buf_init(&file, FILE_MAX);
    bool well = s_is_ours(path, S_IFREG) && tt_buf_read_file(&file, path) == TT_OK && file.size > HASH_TEXT;
    const char *text = tt_buf_text(&file);
    well = well && strlen(text) == file.size && text[HASH_TEXT - 1] == '\n';
    if (well) {
        s_hash(hash, text + HASH_TEXT);
        well = strncmp(hash, text, HASH_TEXT - 1) == 0;
    }
    json_t *root = well ? json_loads(text + HASH_TEXT, 0, NULL) : NULL;
    well = root && s_take(out, root, question);
    json_decref(root);
    tt_buf_free(&file);
    return well;
}

bool gym_cache_get(gym_answer_t *out, const json_t *question)
{
    *out = (gym_answer_t){0};
    char *folder = s_folder();
    if (!folder)
        return false;
    char *name = s_name(question), *path = tt_sprintf("%s/%s", folder, name);
    const bool found = s_is_ours(folder, S_IFDIR) && s_read(out, path, question);
    free(folder);
    free(name);
    free(path);
    return found;
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------ */

static int s_is_file(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > sizeof s_suffix &&
           strcmp(entry->d_name + length - (sizeof s_suffix - 1), s_suffix) == 0;
}

/*  When there are too many the oldest goes. */
static void s_make_room(const char *folder)
{
    struct dirent **list;
    char *oldest = NULL;
    time_t when = 0;
    const int count = scandir(folder, &list, s_is_file, NULL);
    for (int i = 0; i < count; i++) {
        struct stat info;
        char *path = tt_sprintf("%s/%s", folder, list[i]->d_name);
        if (lstat(path, &info) == 0 && (!oldest || info.st_mtime < when)) {
            free(oldest);
            oldest = path;
            path = NULL;
            when = info.st_mtime;
        }
        free(path);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
    if (count >= FILES_MAX && oldest)
        unlink(oldest);
    free(oldest);
}

static char *s_text(const gym_answer_t *answer, const json_t *question)
{
    char hash[HASH_TEXT];
    json_t *root = json_pack("{s:i, s:O, s:O, s:s, s:s}", "format", FORMAT, "question", question, "about",
        answer->about, "saves", answer->verdict.saves, "why", answer->verdict.why);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text || strlen(text) + HASH_TEXT > FILE_MAX) {
        free(text);
        return NULL;
    }
    s_hash(hash, text);
    char *out = tt_sprintf("%s\n%s", hash, text);
    free(text);
    return out;
}

void gym_cache_put(const gym_answer_t *answer, const json_t *question)
{
    char *folder = s_folder();
    char *text = folder && s_are_settled(json_object_get(answer->about, "sources")) ? s_text(answer, question) : NULL;
    if (text && tt_file_make_path(folder, 0700) == TT_OK && s_is_ours(folder, S_IFDIR)) {
        char *name = s_name(question);
        s_make_room(folder);
        tt_file_replace(folder, name, text, 0600); /* if it cannot be kept it is asked for again */
        free(name);
    }
    free(text);
    free(folder);
}

void gym_cache_forget(const json_t *question)
{
    char *folder = s_folder();
    if (!folder)
        return;
    char *name = s_name(question), *path = tt_sprintf("%s/%s", folder, name);
    unlink(path);
    free(folder);
    free(name);
    free(path);
}

#include "local/needs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "k8s/front/object.h"

enum { WORD_MAX = 128, HERES_MAX = 8 };

/* ---- scripts --------------------------------------------------------------------------------------------------------------- */

/*  After these a command follows at once. */
static const char *const s_keywords[] = {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec",
    "command", "nohup", "builtin", NULL};
static const char *const s_builtins[] = {"fi", "done", "}", "for", "in", "function", "select", "[", "[[", ":", ".",
    "alias", "bg", "break", "cd", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exit", "export",
    "false", "fg", "getopts", "hash", "jobs", "kill", "let", "local", "mapfile", "popd", "printf", "pushd", "pwd",
    "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "test", "times", "trap", "true",
    "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", NULL};

typedef struct {
    const char *at;
    char heres[HERES_MAX][WORD_MAX]; /* here-documents that begin behind this line */
    size_t here_count;
    json_t *found;
    const char *script;
    bool over;
} scan_t;

static bool s_in(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static void s_skip_heres(scan_t *self)
{
    for (size_t i = 0; i < self->here_count; i++)
        while (*self->at) {
            const char *line = self->at + strspn(self->at, "\t");
            const size_t length = strcspn(line, "\n"), end = strlen(self->heres[i]);
            self->at = line + length + (line[length] == '\n');
            if (length == end && strncmp(line, self->heres[i], end) == 0)
                break;
        }
    self->here_count = 0;
}

/*  At `<<`: which line ends the document. */
static void s_here(scan_t *self)
{
    self->at += 2;
    self->at += strspn(self->at, "-");
    self->at += strspn(self->at, " \t");
    const char quote = *self->at == '\'' || *self->at == '"' ? *self->at++ : 0;
    const char ends[] = {quote ? quote : ' ', '\n', ';', '\0'};
    const size_t length = strcspn(self->at, ends);
    if (self->here_count < HERES_MAX && length < WORD_MAX)
        snprintf(self->heres[self->here_count++], WORD_MAX, "%.*s", (int)length, self->at);
    self->at += length + (quote && self->at[length] == quote);
}

static void s_quoted(scan_t *self)
{
    const char quote = *self->at++;
    while (*self->at && *self->at != quote)
        self->at += quote == '"' && *self->at == '\\' && self->at[1] ? 2 : 1;
    self->at += *self->at != '\0';
}

/*  A function of the script itself? */
static bool s_is_defined(const scan_t *self, const char *word)
{
    char form[WORD_MAX + 16];
    snprintf(form, sizeof form, "%s()", word);
    if (strstr(self->script, form))
        return true;
    snprintf(form, sizeof form, "function %s", word);
    return strstr(self->script, form) != NULL;
}

static void s_found(scan_t *self, const char *word)
{
    size_t i;
    json_t *other;
    json_array_foreach(self->found, i, other)
    {
        if (strcmp(json_string_value(other), word) == 0)
            return;
    }
    if (!s_is_defined(self, word))
        json_array_append_new(self->found, tt_json_text(word));
}

/*  At `(` of a substitution: behind its end. */
static void s_substitution(scan_t *self)
{
    int depth = 0;
    while (*self->at) {
        if (*self->at == '\'' || *self->at == '"') {
            s_quoted(self);
            continue;
        }
        depth += (*self->at == '(') - (*self->at == ')');
        self->at++;
        if (depth == 0)
            return;
    }
}

/*  At `((`: behind its end, if it is arithmetic, whose names are variables. As bash does: it is a subshell in another where the inner end is
 *  not the end of both. */
static bool s_arithmetic(scan_t *self)
{
    const char *begin = self->at++;
    s_substitution(self);
    if (*self->at != ')') {
        self->at = begin;
        return false;
    }
    self->at++;
    return true;
}

/*  What stands behind `NAME=`. */
static void s_value(scan_t *self)
{
    while (*self->at && !strchr(" \t\n;&|", *self->at))
        if (*self->at == '\'' || *self->at == '"')
            s_quoted(self);
        else if (*self->at == '(')
            s_substitution(self);
        else
            self->at++;
}

/*  A word where a command is expected. Does one still follow? */
static bool s_word(scan_t *self)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:@%!{}[]-";
    char word[WORD_MAX];
    const size_t length = strspn(self->at, plain);
    const char behind = self->at[length];
    if (length == 0 || length >= sizeof word || behind == '=') {
        self->at += length;
        if (length == 0 || behind != '=')
            return false;
        s_value(self);
        return true;
    }
    snprintf(word, sizeof word, "%.*s", (int)length, self->at);
    self->at += length;
    if (strcmp(word, "case") == 0)
        self->over = true;
    if (!behind || strchr(" \t\n;&|<>)", behind)) {
        if (s_in(word, s_keywords))
            return true;
        if (!s_in(word, s_builtins) && !self->over)
            s_found(self, word);
    }
    return false;
}

/*  Anything else: operators, quotes, arguments. True: a command is expected behind it. */
static bool s_other(scan_t *self, bool expected)
{
    const char c = *self->at;
    if (c == '\'' || c == '"') {
        s_quoted(self);
        return false;
    }
    if (c == '\\') {
        self->at += self->at[1] ? 2 : 1;
        return expected;
    }
    if (c == '<' && self->at[1] == '<' && self->at[2] != '<') {
        s_here(self);
        return false;
    }
    self->at++;
    if (c == '\n')
        s_skip_heres(self);
    const bool defined =
        c == ')' && self->at - self->script > 1 && self->at[-2] == '('; /* a function: its body follows */
    return defined || strchr("\n;&|(", c) != NULL || (expected && strchr(" \t", c));
}

json_t *needs_of_script(const char *script)
{
    scan_t self = {.at = script, .found = json_array(), .script = script};
    bool expected = true, word_begins = true;
    while (*self.at && !self.over) {
        if (*self.at == '#' && word_begins) {
            self.at += strcspn(self.at, "\n");
            continue;
        }
        const char *before = self.at;
        if (expected && !strchr(" \t\n;&|()<>'\"\\$`#", *self.at))
            expected = s_word(&self);
        else if (strncmp(self.at, "$((", 3) == 0) { /* arithmetic: its names are variables */
            self.at++;
            s_substitution(&self);
            expected = false;
        } else if (strncmp(self.at, "((", 2) == 0 && s_arithmetic(&self))
            expected = false;
        else if (*self.at == '>' || *self.at == '$' || *self.at == '`') {
            self.at +=
                self.at[1] == '&' || self.at[1] == '(' ? 2 : 1; /* 2>&1; what is substituted is not looked into */
            expected = false;
        } else
            expected = s_other(&self, expected);
        if (self.at == before)
            self.at++;
        word_begins = strchr(" \t\n;&|(", self.at[-1]) != NULL;
    }
    return self.found;
}

/* ---- programs of this machine --------------------------------------------------------------------------------------------- */

static bool s_in_path(const char *word)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        const size_t length = strcspn(at, ":");
        char *file = tt_sprintf("%.*s/%s", (int)length, at, word);
        const bool there = access(file, X_OK) == 0;
        free(file);
        if (there)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/*  In a volume there may be anything, once the job runs; and so in folders that the container itself puts into its PATH. */
static bool s_may_come(const json_t *container, const char *word)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(container, "volumeMounts"), i, entry)
    {
        const char *mount = parts_text(entry, "mountPath", "");
        if (*mount && strncmp(word, mount, strlen(mount)) == 0)
            return true;
    }
    json_array_foreach(json_object_get(container, "env"), i, entry)
    {
        if (strcmp(parts_text(entry, "name", ""), "PATH") == 0 && !strchr(word, '/'))
            return true;
    }
    return word[0] == '.'; /* of the working directory */
}

static bool s_is_here(const json_t *container, const char *word)
{
    if (strchr(word, '/'))
        return word[0] != '/' || access(word, X_OK) == 0 || s_may_come(container, word);
    return s_in_path(word) || s_may_come(container, word);
}

/* ---- a job ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    json_t *missing; /* {"ding": {"who": "coordinator, learner", "image": "opendilab/ding:nightly"}} */
    bool tutti;
    local_say_fn say;
    void *ctx;
    size_t lines;
} needs_t;

static void s_say_line(needs_t *self, const char *text)
{
    self->say(self->ctx, text);
    self->lines++;
}

static void s_missing(needs_t *self, const char *program, const char *who, const json_t *container)
{
    json_t *entry = json_object_get(self->missing, program);
    const char *others = parts_text(entry, "who", "");
    if (!entry) {
        json_object_set_new(
            self->missing, program, json_pack("{s:s, s:s}", "who", who, "image", parts_text(container, "image", "")));
        return;
    }
    const size_t length = strlen(who), all = strlen(others);
    if (all < length || strcmp(others + all - length, who) != 0)
        json_object_set_new(entry, "who", json_sprintf("%s, %s", others, who));
}

/*  The script of `sh -c SCRIPT`; NULL = it is not such a command. */
static const char *s_script(const json_t *command, const json_t *args)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ash", "zsh", NULL};
    const char *program = json_string_value(json_array_get(command, 0));
    const char *slash = program ? strrchr(program, '/') : NULL;
    if (!program || !s_in(slash ? slash + 1 : program, shells))
        return NULL;
    const size_t first = json_array_size(command), count = first + json_array_size(args);
    for (size_t i = 1; i < count; i++) {
        const char *word = json_string_value(i < first ? json_array_get(command, i) : json_array_get(args, i - first));
        if (!word || (word[0] == '-' && !strchr(word, 'c')))
            continue;
        if (word[0] != '-' || i + 1 == count)
            return NULL;
        return json_string_value(i + 1 < first ? json_array_get(command, i + 1) : json_array_get(args, i + 1 - first));
    }
    return NULL;
}

static void s_container(needs_t *self, const char *who, const json_t *container)
{
    const json_t *command = json_object_get(container, "command"), *args = json_object_get(container, "args");
    const char *program = json_string_value(json_array_get(command, 0));
    size_t i;
    json_t *word;
    if (!program) {
        char text[512];
        snprintf(text, sizeof text,
            "%s: container %s has no command: what its image %s would run is not known on this machine", who,
            parts_text(container, "name", ""), parts_text(container, "image", ""));
        if (!self->tutti)
            s_say_line(self, text);
        return;
    }
    const char *slash = strrchr(program, '/');
    const bool own =
        self->tutti && strcmp(slash ? slash + 1 : program, "tutti") == 0; /* this program, wherever it is */
    if (!own && !s_is_here(container, program))
        s_missing(self, program, who, container);
    const char *script = s_script(command, args);
    json_t *words = script ? needs_of_script(script) : NULL;
    json_array_foreach(words, i, word)
    {
        if (!s_is_here(container, json_string_value(word)))
            s_missing(self, json_string_value(word), who, container);
    }
    json_decref(words);
}

static tt_status_t s_template(void *ctx, const front_template_t *template_)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const json_t *spec = json_object_get(json_object_get(template_->holder, "template"), "spec");
    size_t i;
    json_t *container;
    for (size_t l = 0; l < TT_COUNT(lists); l++)
        json_array_foreach(json_object_get(spec, lists[l]), i, container)
        {
            s_container(ctx, template_->who, container);
        }
    return TT_OK;
}

static void s_say_missing(needs_t *self)
{
    const char *program;
    json_t *entry;
    json_object_foreach(self->missing, program, entry)
    {
        const char *image = parts_text(entry, "image", "");
        char *text = tt_sprintf(
            "not on this machine: %s (wanted by %s)%s%s; put it into the PATH, a virtual environment will do", program,
            parts_text(entry, "who", ""), *image ? "; on a cluster it comes with the image " : "", image);
        s_say_line(self, text);
        free(text);
    }
}

size_t needs_say(const front_t *front, const json_t *job, local_say_fn say, void *ctx)
{
    const json_t *spec = json_object_get(job, "spec");
    needs_t self = {.missing = json_object(),
        .tutti = strcmp(parts_text(spec, "engine", ""), "tutti") == 0,
        .say = say,
        .ctx = ctx};
    (void)front->templates(job, s_template, &self);
    s_say_missing(&self);
    json_decref(self.missing);
    return self.lines;
}

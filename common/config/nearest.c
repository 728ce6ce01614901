#include "common/config/parts.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"

enum { NAME_ROOM = 64 };

static size_t s_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool s_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*  Edit distance in which a swap of neighbours counts as one edit (optimal string alignment: insert, delete,
 *  replace, transpose), and capitals as small letters. Both names are shorter than NAME_ROOM. */
static size_t s_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t row[3][NAME_ROOM + 1];
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *above = row[(i + 2) % 3], *above2 = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = s_min(above[j - 1] + !s_same(a[i - 1], b[j - 1]), s_min(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && s_same(a[i - 1], b[j - 2]) && s_same(a[i - 2], b[j - 1]))
                now[j] = s_min(now[j], above2[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *key_leaf(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

enum { FAR = NAME_ROOM };

/*  Farther than about a third of the name is no typo; nor is a name of which no letter stays. */
static size_t s_typo(const char *wrong, const char *name, size_t slack)
{
    const size_t length = strlen(wrong), distance = s_distance(wrong, name);
    return distance < length / 3 + slack && distance < s_min(length, strlen(name)) ? distance : FAR;
}

/*  "shard" and "shards": an ending left away, or added. */
static bool s_begins(const char *a, const char *b)
{
    return strncmp(a, b, s_min(strlen(a), strlen(b))) == 0;
}

/*  Are the letters of the shorter one all in the longer one, in their order? "sed" is "seed" with a letter left out. */
static bool s_within(const char *a, const char *b)
{
    const char *few = strlen(a) < strlen(b) ? a : b, *many = few == a ? b : a;
    for (; *few && *many; many++)
        few += s_same(*few, *many);
    return !*few;
}

/*  0 to 2: which of two equally near is more likely meant. */
static size_t s_unlike(const char *wrong, const char *name)
{
    return s_begins(wrong, name) ? 0 : s_within(wrong, name) ? 1 : 2;
}

/*  Of a word without sections every third letter may be wrong, one of three or two; of a path one more, most of it is right anyway. */
static size_t s_slack(const char *wrong)
{
    return strchr(wrong, '.') || strlen(wrong) < 3 ? 2 : 1;
}

/*  By the whole path, or by its last part where the section is wrong or missing: that has to be nearer, as there are
 *  many sections. Of two equally near, the one that begins alike, then the one with the same letters, then one of no section (the wrong
 *  one is of another trainer, and says nothing), then the one whose whole path is nearer. */
static size_t s_far(const char *wrong, const char *name)
{
    const size_t near = s_min(s_typo(wrong, name, s_slack(wrong)), s_typo(key_leaf(wrong), key_leaf(name), 1));
    if (near == FAR)
        return SIZE_MAX;
    return (3 * near + s_unlike(key_leaf(wrong), key_leaf(name))) * NAME_ROOM +
           (strchr(name, '.') ? s_distance(wrong, name) : 0);
}

/*  "CartPole" of CartPole-v1. */
static const char *s_going_on(const char *wrong, const char *const *names, size_t count)
{
    enum { LEAST = 3 };
    const size_t length = strlen(wrong);
    for (size_t i = 0; i < count && length >= LEAST; i++)
        if (strncasecmp(names[i], wrong, length) == 0 && names[i][length] == '-')
            return names[i];
    return NULL;
}

const char *tt_nearest(const char *wrong, const char *const *names, size_t count)
{
    const size_t length = strlen(wrong);
    if (length == 0 || length >= NAME_ROOM)
        return NULL;
    const char *best = NULL, *leaf = NULL;
    size_t best_far = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) >= NAME_ROOM)
            continue;
        const size_t far = s_far(wrong, names[i]);
        if (far < best_far) {
            best = names[i];
            best_far = far;
        }
        if (!leaf && strcmp(key_leaf(wrong), key_leaf(names[i])) == 0)
            leaf = names[i];
    }
    if (leaf && !strchr(wrong, '.'))
        return leaf; /* the right word in the wrong place */
    return best ? best : leaf ? leaf : s_going_on(wrong, names, count);
}

size_t choices_split(char *text, const char *out[CHOICES_MAX])
{
    size_t count = 0;
    for (char *save = NULL, *word = strtok_r(text, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
        TT_CHECK(count < CHOICES_MAX);
        out[count++] = word;
    }
    return count;
}

const char *tt_meant(char out[TT_MEANT_MAX], const char *wrong, const char *choices)
{
    const char *names[CHOICES_MAX];
    char *copy = tt_strdup(choices);
    const char *near = tt_nearest(wrong, names, choices_split(copy, names));
    snprintf(out, TT_MEANT_MAX, "%s%s%s", near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    free(copy);
    return out;
}

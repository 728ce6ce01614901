#include "common/config/config.h"
#include <string.h>

enum { NAME_ROOM = 64 };

static size_t s_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*  Edit distance in which a swap of neighbours counts as one edit (optimal string alignment: insert, delete,
 *  replace, transpose). Both names are shorter than NAME_ROOM. */
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
            now[j] = s_min(above[j - 1] + (a[i - 1] != b[j - 1]), s_min(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = s_min(now[j], above2[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

/*  Same last part of a dotted path: "shards" and "learner.shards". */
static bool s_same_leaf(const char *wrong, const char *name)
{
    const char *dot = strrchr(name, '.'), *wrong_dot = strrchr(wrong, '.');
    return strcmp(wrong_dot ? wrong_dot + 1 : wrong, dot ? dot + 1 : name) == 0;
}

const char *tt_nearest(const char *wrong, const char *const *names, size_t count)
{
    const size_t length = strlen(wrong);
    if (length == 0 || length >= NAME_ROOM)
        return NULL;
    const char *best = NULL, *leaf = NULL;
    size_t best_distance = length / 3 + 2; /* farther than a third of the name is no typo */
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) >= NAME_ROOM)
            continue;
        const size_t distance = s_distance(wrong, names[i]);
        if (distance < best_distance && distance < s_min(length, strlen(names[i]))) {
            best = names[i];
            best_distance = distance;
        }
        if (!leaf && s_same_leaf(wrong, names[i]))
            leaf = names[i];
    }
    if (leaf && !strchr(wrong, '.'))
        return leaf; /* the right word in the wrong place */
    return best ? best : leaf;
}

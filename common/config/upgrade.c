/*  upgrade - what an older version's keys are called now. One table; an entry stays as long as runs of that version are read.
 *  Spaces are apart: numbers became words, and nobody wrote them by hand. */
#include "common/base/mem.h"
#include "common/config/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *key; /* as the older version wrote it                                                     */
    const char *now; /* what it is called now; NULL = it goes                                             */
    const char *won; /* it goes only where it and this key are set, and not 0: this one was meant, and it went unused */
} upgrade_t;

static const upgrade_t s_upgrades[] = {
    /* 0.1, whose resolved configs have every key */
    {"algorithm.entropy", "algorithm.entropy_coef", NULL},
    {"algorithm.minibatches", NULL, "algorithm.minibatch_size"},
};

static bool s_is_set(const tt_config_t *self, const char *key)
{
    const entry_t *entry = config_entry(self, key);
    return entry && entry->text && strtod(entry->text, NULL) != 0;
}

static void s_drop(tt_config_t *self, entry_t *entry)
{
    entry_t *end = self->entries + self->entry_count--;
    entry_free(entry);
    memmove(entry, entry + 1, (size_t)(end - entry - 1) * sizeof *entry);
}

static void s_rename(entry_t *entry, const char *now)
{
    free(entry->key);
    entry->key = tt_strdup(now);
}

static tt_status_t s_apply(tt_config_t *self, const upgrade_t *upgrade, tt_buf_t *said)
{
    entry_t *entry = config_entry(self, upgrade->key);
    const char *and = said->size ? ", " : "";
    if (!entry || (upgrade->now && config_entry(self, upgrade->now)))
        return TT_OK;
    if (upgrade->won && !(s_is_set(self, upgrade->key) && s_is_set(self, upgrade->won)))
        return TT_OK; /* as it is written today */
    if (upgrade->now)
        TT_TRY(tt_buf_printf(said, "%s%s is %s now", and, upgrade->key, upgrade->now));
    else
        TT_TRY(tt_buf_printf(
            said, "%s%s %.40s went unused beside %s", and, upgrade->key, entry->text ? entry->text : "", upgrade->won));
    if (upgrade->now)
        s_rename(entry, upgrade->now);
    else
        s_drop(self, entry);
    return TT_OK;
}

/*  ---- spaces ---- */

/*  The number that the key has; 0: none. */
static unsigned long s_number(const tt_config_t *self, const char *key)
{
    const entry_t *entry = config_entry(self, key);
    const bool digits =
        entry && entry->kind == ENTRY_PLAIN && *entry->text && strspn(entry->text, "0123456789") == strlen(entry->text);
    return digits ? strtoul(entry->text, NULL, 10) : 0;
}

static void s_put_words(tt_config_t *self, const char *key, const char *format, unsigned long number, const char *from)
{
    char words[64];
    char *origin = tt_strdup(tt_config_origin(self, from));
    snprintf(words, sizeof words, format, number);
    tt_config_put(self, key, words, origin);
    free(origin);
}

/*  `obs: 4, actions: 2, action_dims: 1` is one float32 vector and one choice; `actions: 0` a vector of `action_dims`. */
void tt_config_upgrade_spaces(tt_config_t *self)
{
    static const char *const gone[] = {"space.actions", "space.action_dims"};
    TT_CHECK(self->claim_count == 0); /* claims point to entries */
    const unsigned long obs = s_number(self, "space.obs"), actions = s_number(self, gone[0]);
    const unsigned long dims = s_number(self, gone[1]);
    if (!obs || !dims)
        return; /* as it is written today, or nothing that a program wrote */
    s_put_words(self, "space.obs", "float32[%lu]", obs, "space.obs");
    s_put_words(self, "space.action", actions ? "discrete(%lu)" : "float32[%lu]", actions ? actions : dims, gone[1]);
    for (size_t i = 0; i < TT_COUNT(gone); i++)
        if (config_entry(self, gone[i]))
            s_drop(self, config_entry(self, gone[i]));
}

/*  ---- settings ---- */

tt_status_t tt_config_upgrade(tt_config_t *self, tt_buf_t *said)
{
    TT_CHECK(self->claim_count == 0); /* claims point to entries */
    for (size_t i = 0; i < TT_COUNT(s_upgrades); i++)
        TT_TRY(s_apply(self, &s_upgrades[i], said));
    return TT_OK;
}

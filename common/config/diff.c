#include <string.h>
#include "common/config/parts.h"

/*  Same path of ideas as a claim: only what tables know counts, with its default where nothing is said. */
void tt_config_diff(const tt_config_t *before, const tt_config_t *now, tt_config_diff_fn fn, void *ctx)
{
    for (size_t i = 0; i < now->claim_count; i++) {
        const claim_t *claim = &now->claims[i], *old = config_claim(before, claim->field->key);
        if (!old || strcmp(old->value, claim->value) != 0)
            fn(ctx, claim->field, old ? old->value : "none", claim->value, claim->origin);
    }
    for (size_t i = 0; i < before->claim_count; i++)
        if (before->claims[i].made && !config_claim(now, before->claims[i].field->key))
            fn(ctx, before->claims[i].field, before->claims[i].value, "none", now->name);
}

#include <string.h>
#include "common/config/parts.h"

/*  Same path of ideas as a claim: only what tables know counts, with its default where nothing is said. */
void tt_config_diff(const tt_config_t *before, const tt_config_t *now, tt_config_diff_fn fn, void *ctx)
{
    for (size_t i = 0; i < now->claim_count; i++) {
        const claim_t *claim = &now->claims[i], *old = config_claim(before, claim->field->key);
        if (!old || strcmp(old->value, claim->value) != 0)
            fn(ctx, claim->field, old ? old->value : "", claim->value, claim->origin);
    }
}

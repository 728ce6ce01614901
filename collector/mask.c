#include "collector/mask.h"

bool mask_settle(const tt_columns_t *columns, uint8_t *mask, uint32_t *column, uint32_t *element)
{
    for (uint32_t c = columns->action; c < columns->action + columns->action_count; c++) {
        const tt_column_t *at = &columns->at[c];
        for (uint32_t k = 0; at->choice && k < at->elements; k++) {
            const uint32_t n = columns->choices[at->first + k];
            uint8_t any = 0;
            for (uint32_t i = 0; i < n; i++)
                any |= mask[i] = mask[i] != 0; /* a plug-in's true may be any byte */
            if (!any) {
                *column = c;
                *element = k;
                return false;
            }
            mask += n;
        }
    }
    return true;
}

static uint32_t s_choice(const tt_column_t *column, const void *row, uint32_t k)
{
    return column->dtype == TT_U8 ? ((const uint8_t *)row)[k] : (uint32_t)((const int32_t *)row)[k];
}

bool mask_allows(
    const tt_columns_t *columns, const uint8_t *mask, const void *const *action, uint32_t *column, uint32_t *element)
{
    for (uint32_t i = 0; i < columns->action_count; i++) {
        const tt_column_t *at = &columns->at[columns->action + i];
        for (uint32_t k = 0; at->choice && k < at->elements; k++) {
            if (!mask[s_choice(at, action[i], k)]) {
                *column = columns->action + i;
                *element = k;
                return false;
            }
            mask += columns->choices[at->first + k];
        }
    }
    return true;
}

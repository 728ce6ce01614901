#include "elasticdl/request.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/http/query.h"

static const char *const s_strategies[] = {
    [ELASTICDL_ALL_REDUCE] = "AllReduce",
    [ELASTICDL_PARAMETER_SERVER] = "ParameterServer",
};

const char *elasticdl_strategy_name(elasticdl_strategy_t strategy)
{
    return s_strategies[strategy];
}

static tt_status_t s_strategy(elasticdl_strategy_t *out, const char *name)
{
    for (size_t i = 0; i < TT_COUNT(s_strategies); i++)
        if (strcmp(s_strategies[i], name) == 0) {
            *out = (elasticdl_strategy_t)i;
            return TT_OK;
        }
    return tt_err(TT_INVALID, "strategy is '%.60s'; AllReduce and ParameterServer are possible", name);
}

static bool s_is_label(const char *text, size_t room)
{
    const size_t length = strlen(text);
    bool good = length > 0 && length < room && text[0] != '-' && text[length - 1] != '-';
    for (const char *c = text; *c && good; c++)
        good = islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '-';
    return good;
}

tt_status_t elasticdl_name_check(const char *name)
{
    if (s_is_label(name, ELASTICDL_NAME) && isalpha((unsigned char)name[0]))
        return TT_OK;
    return tt_err(TT_INVALID,
        "name is '%.60s'; lower case letters, digits and '-' within are possible, a letter first, at most %d", name,
        ELASTICDL_NAME - 1);
}

tt_status_t elasticdl_queue_check(const char *name)
{
    if (s_is_label(name, ELASTICDL_QUEUE))
        return TT_OK;
    return tt_err(TT_INVALID, "queue is '%.80s'; lower case letters, digits and '-' within are possible, at most %d",
        name, ELASTICDL_QUEUE - 1);
}

tt_status_t elasticdl_request_check(const elasticdl_request_t *self)
{
    TT_TRY(elasticdl_name_check(self->name));
    if (self->queue[0])
        TT_TRY(elasticdl_queue_check(self->queue));
    if (self->strategy == ELASTICDL_PARAMETER_SERVER && self->ps < 1)
        return tt_err(TT_INVALID, "n_ps is 0; ParameterServer needs at least 1, without any it is AllReduce");
    if (self->workers + self->ps > ELASTICDL_MEMBERS)
        return tt_err(TT_INVALID, "n_worker and n_ps are %d together; a task has at most %d members",
            self->workers + self->ps, ELASTICDL_MEMBERS);
    return TT_OK;
}

/*  A parameter that must be there. */
static tt_status_t s_required(char *out, size_t size, const char *query, const char *name)
{
    const tt_status_t status = tt_query_get(out, size, query, name);
    return status == TT_NOT_FOUND ? tt_err(TT_INVALID, "%s is missing", name) : status;
}

static tt_status_t s_number(int *out, const char *text, const char *name, int min, int max)
{
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || number < min || number > max)
        return tt_err(TT_INVALID, "%s is '%s'; a number from %d to %d is possible", name, text, min, max);
    *out = (int)number;
    return TT_OK;
}

static tt_status_t s_count(int *out, const char *query, const char *name, int min)
{
    char text[16];
    TT_TRY(s_required(text, sizeof text, query, name));
    return s_number(out, text, name, min, ELASTICDL_MEMBERS);
}

static tt_status_t s_optional(char *out, size_t size, const char *query, const char *name, const char *otherwise)
{
    const tt_status_t status = tt_query_get(out, size, query, name);
    if (status != TT_NOT_FOUND)
        return status;
    snprintf(out, size, "%s", otherwise);
    return TT_OK;
}

static tt_status_t s_deadline(int *out, const char *query)
{
    char text[16];
    TT_TRY(s_optional(text, sizeof text, query, "deadline_s", ""));
    return text[0] ? s_number(out, text, "deadline_s", 1, INT32_MAX) : TT_OK;
}

tt_status_t elasticdl_request_read(elasticdl_request_t *out, const char *query)
{
    elasticdl_request_t self = {0};
    char strategy[64];
    TT_TRY(s_required(strategy, sizeof strategy, query, "strategy"));
    TT_TRY(s_strategy(&self.strategy, strategy));
    TT_TRY(s_count(&self.workers, query, "n_worker", 1));
    if (self.strategy == ELASTICDL_PARAMETER_SERVER)
        TT_TRY(s_count(&self.ps, query, "n_ps", 0));
    TT_TRY(s_optional(self.name, sizeof self.name, query, "name", "default"));
    TT_TRY(s_optional(self.image, sizeof self.image, query, "img", ""));
    TT_TRY(s_optional(self.queue, sizeof self.queue, query, "queue", ""));
    TT_TRY(s_deadline(&self.deadline_s, query));
    TT_TRY(elasticdl_request_check(&self));
    *out = self;
    return TT_OK;
}

void elasticdl_request_write(char out[ELASTICDL_QUERY], const elasticdl_request_t *self)
{
    char *image = tt_query_escape(self->image);
    int used = snprintf(out, ELASTICDL_QUERY, "strategy=%s&n_worker=%d&n_ps=%d&img=%s&name=%s",
        elasticdl_strategy_name(self->strategy), self->workers, self->ps, image, self->name);
    if (self->queue[0])
        used += snprintf(out + used, ELASTICDL_QUERY - (size_t)used, "&queue=%s", self->queue);
    if (self->deadline_s)
        snprintf(out + used, ELASTICDL_QUERY - (size_t)used, "&deadline_s=%d", self->deadline_s);
    free(image);
}

/*  dump - JSON as it is sent and kept.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>

/*  Canonical text of a value: sorted keys, compact, reals with 15 digits (jansson's 17 turn 0.1 into the quantity 101m). Caller
 *  frees. */
char *kube_dump(const json_t *value);
/*  The same of a Secret, in one piece of memory of which there is no copy; tt_free_secret. */
char *kube_dump_secret(const json_t *secret);
/*  What a Secret says in stringData is overwritten; then it is given back. */
void kube_wipe_secret(json_t **secret_p);

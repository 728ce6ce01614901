#include <stdint.h>
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"

/*  splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t s_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t dijob_name_seed(const char *uid)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *uid; uid++)
        hash = (hash ^ (uint8_t)*uid) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

char *dijob_pod_name(const char *job, dijob_role_t role, uint64_t *random)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789"; /* k8s.io/apimachinery, util/rand */
    char suffix[6] = {0};
    if (role == DIJOB_COORDINATOR)
        return tt_sprintf("%s-coordinator", job);
    uint64_t bits = s_random(random);
    for (int i = 0; i < 5; i++, bits /= sizeof alphabet - 1)
        suffix[i] = alphabet[bits % (sizeof alphabet - 1)];
    return tt_sprintf("%s-%s-%s", job, dijob_role_label(role), suffix);
}

char *dijob_pod_url(const dijob_pod_t *pod, int gpu_port)
{
    const char *namespace_ = *pod->meta.namespace_ ? pod->meta.namespace_ : "default";
    return tt_sprintf("%s.%s:%d", pod->meta.name, namespace_, pod->port + gpu_port);
}

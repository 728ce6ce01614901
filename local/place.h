/*  place - what all local pods of a run share: where folders are, what this machine allows, addresses and names.
 *
 *  Every pod has an address of its own in 127.0.0.0/8 and a free port; where mount namespaces are allowed, /etc/hosts of the
 *  pods names them as the cluster's DNS would (<pod>.<namespace>), so URLs are those of the cluster; else they are addresses.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include <stdint.h>
#include "common/base/status.h"
#include "controller/limits.h"

typedef void (*local_say_fn)(void *ctx, const char *text); /* one line for a person, without its end */

typedef struct {
    char *run_dir, *namespace_, *job; /* job: its name                                            */
    char kind;                        /* of mount namespaces: 'r', 'u', 0 (steps.h)               */
    limits_t *limits;                 /* NULL = not held                                          */
    unsigned net;                     /* pods have addresses 127.<net>.x.y                        */
    unsigned next;                    /* number of the next address                               */
    unsigned next_port;               /* of the run's own: how many have been given               */
    bool named;                       /* di-server is 127.<net>.0.1                               */
    json_t *hosts;                    /* {"<pod>": {"ip", "domain"}} of pods there are            */
    const json_t *objects;            /* ConfigMaps and Secrets of the manifest, an array; borrowed */
    local_say_fn say;
    void *ctx;
    json_t *said; /* lines that were said: each once */
} place_t;

/*  run_dir exists. */
tt_status_t place_new(place_t **self_p, const char *run_dir, const char *namespace_, const char *job, bool namespaces,
    bool limits, local_say_fn say, void *ctx);
void place_destroy(place_t **self_p);

/*  Say it once. */
void place_say(place_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  "127.17.3.1" of number n; a different third part for each of the first 254, so that a name cut at its last dot still tells. */
void place_address(const place_t *self, unsigned n, char out[16]);
/*  Take another net: another run has this one. False: all have been tried. */
bool place_next_net(place_t *self);
/*  Is the server there, at port 8080 of 127.<net>.0.1? Writes the hosts file. */
void place_name_server(place_t *self, bool there);
/*  count free ports in a row, on every address. TT_UNAVAILABLE. */
tt_status_t place_ports(place_t *self, uint16_t *first, unsigned count);
/*  A pod is there / gone: its name in /etc/hosts (subdomain: "di-<job>" or NULL). */
void place_host(place_t *self, const char *pod, const char *ip, const char *subdomain);
void place_forget(place_t *self, const char *pod);
/*  The file that stands for /etc/hosts. Caller frees. */
char *place_hosts_file(const place_t *self);
/*  "<pod>.<namespace>:<port>", or "<ip>:<port>" where names lead nowhere. Caller frees. */
char *place_url(const place_t *self, const char *pod, const char *ip, int port);
/*  mkdir -p of a path below run_dir made by printf. Caller frees. */
char *place_folder(const place_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  A ConfigMap or Secret of the manifest by its name; NULL. */
json_t *place_object(const place_t *self, const char *kind, const char *name);

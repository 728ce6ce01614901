/*  reply - answers of the agent and of the master, and where they serve. Threads: the server's. */
#pragma once
#include <jansson.h>
#include "common/http/server.h"

/*  The HTTP code of a status. */
int reply_code(tt_status_t status);
/*  Words as they are, without a line's end: the original's client compares with "OK". */
void reply_text(tt_server_t *server, uint64_t id, int code, const char *text);
/*  Takes value. */
void reply_json(tt_server_t *server, uint64_t id, int code, json_t *value);

/*  "http://127.0.0.1:7897" of the address that a server was given and its port; 0.0.0.0 for every address. */
void reply_url(char out[128], const char *address, int port);
/*  Can no other host reach this address? */
bool reply_is_loopback(const char *address);

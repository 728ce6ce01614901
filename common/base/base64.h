/*  base64 - RFC 4648 section 4, as kubeconfig files and Secrets hold bytes; libsodium's. Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/*  A 0-terminated copy, line breaks and blanks passed over; NULL where text is no base64. Caller frees. */
char *tt_base64_decode(const char *text, size_t *size);
/*  Caller frees. */
char *tt_base64_encode(const void *data, size_t size);

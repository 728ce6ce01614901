/*  figures - numbers for a person: grouped, with four significant digits, as hours, minutes and seconds.
 *
 *  Threads: pure. */
#pragma once
#include <stdint.h>

enum { FIGURE = 40 }; /* room for one */

/*  12345678 -> "12,345,678" */
const char *figure_count(uint64_t number, char out[FIGURE]);
/*  1234567, "FLOP" -> "1.2 MFLOP" */
const char *figure_amount(uint64_t number, const char *unit, char out[FIGURE]);
/*  476.6, -1116, 0.01235, 1.2e-07; "-" for what is not a number. */
const char *figure_digits(double value, char out[FIGURE]);
/*  75.9 -> "00:01:15"; from a day on "3d 00:01:15"; "-" for what is not a number. */
const char *figure_time(double seconds, char out[FIGURE]);
/*  52711424 -> "53 MB" */
const char *figure_bytes(double bytes, char out[FIGURE]);

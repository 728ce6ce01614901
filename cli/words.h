/*  words - what a placeholder of --help (ENV, ALGORITHM, KEY=VALUE, ...) may stand for, one word a line. */
#pragma once
#include <stdio.h>

/*  Nothing for a placeholder without a list of its own (N, FILE, ...). */
void words_print(FILE *out, const char *placeholder);

/*  main - tutti: one table of subcommands. */
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("tutti " TT_VERSION);
    return 0;
}

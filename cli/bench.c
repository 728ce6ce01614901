/*  bench - the benchmarks are below it (cli/bench.def). */
#include "cli/cmd.h"
#include "cli/sub.h"

const tt_option_t tt_opt_bench[] = {{0}};

int tt_cmd_bench(int argc, char **argv)
{
    return sub_dispatch("bench", "benchmark", argc, argv);
}

/*  mpi_allreduce ROUNDS BYTES... - the median time of MPI_Allreduce over float32, one JSON line a size.
 *  Compiled and run by `./dev bench allreduce` where mpicc and mpirun are. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 100 };

static int s_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double s_median_us(long rounds, int floats)
{
    float *mine = calloc((size_t)floats, sizeof *mine), *sum = calloc((size_t)floats, sizeof *sum);
    double *took = calloc((size_t)rounds, sizeof *took);
    if (!mine || !sum || !took)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (long i = -WARM_UP; i < rounds; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        MPI_Allreduce(mine, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i >= 0)
            took[i] = MPI_Wtime() - start;
    }
    qsort(took, (size_t)rounds, sizeof *took, s_ascending);
    const double median = took[rounds / 2] * 1e6;
    free(mine);
    free(sum);
    free(took);
    return median;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 2; i < argc; i++) {
        const double median = s_median_us(atol(argv[1]), atoi(argv[i]) / (int)sizeof(float));
        if (rank == 0)
            printf("{\"bytes\": %s, \"median_us\": %.2f}\n", argv[i], median);
    }
    MPI_Finalize();
    return 0;
}

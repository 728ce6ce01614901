/*  pause - holds the namespaces of a pod: waits for a signal that ends it, and reaps what is left to it. */

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void s_stop(int number)
{
    (void)number;
    _exit(0);
}

static void s_reap(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    struct sigaction stop = {.sa_handler = s_stop};
    struct sigaction reap = {.sa_handler = s_reap, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGCHLD, &reap, NULL);
    for (;;)
        pause();
}

/* Fault injection for benchmarks/kill.py: preloaded, it counts every call that changes a file, and on the chosen one
 * ends the process as SIGKILL does: before the call (mode 0) or after half of the bytes are written (mode 1).
 * It also knows which descriptors were written to and not synced since. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static long counted = 0, fatal = -1;
static int torn = 0;
static char unsynced[1024];

void shim_arm(long at, int mode) { counted = 0; fatal = at; torn = mode; }
void shim_clean(void) { for (int i = 0; i < 1024; i++) unsynced[i] = 0; }
long shim_count(void) { return counted; }
int shim_unsynced(void) {
    int n = 0;
    for (int i = 0; i < 1024; i++) n += unsynced[i] && fcntl(i, F_GETFD) != -1;
    return n;
}
static int due(void) { return fatal >= 0 && counted++ == fatal; }
static void die(void) { kill(getpid(), SIGKILL); pause(); }
static void wrote(int fd) { if (fd >= 0 && fd < 1024) unsynced[fd] = 1; }
static void synced(int fd) { if (fd >= 0 && fd < 1024) unsynced[fd] = 0; }

#define REAL(name, type) static __typeof__(type) *real; if (!real) real = (__typeof__(type) *)dlsym(RTLD_NEXT, name)

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    REAL("pwrite64", ssize_t (int, const void *, size_t, off64_t));
    if (due()) { if (torn) real(fd, data, n / 2, at); die(); }
    wrote(fd);
    return real(fd, data, n, at);
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }
ssize_t write(int fd, const void *data, size_t n) {
    REAL("write", ssize_t (int, const void *, size_t));
    if (due()) { if (torn) real(fd, data, n / 2); die(); }
    struct stat s;
    if (fd > 2 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) wrote(fd);
    return real(fd, data, n);
}
int fsync(int fd) { REAL("fsync", int (int)); if (due()) die(); int r = real(fd); synced(fd); return r; }
int fdatasync(int fd) { REAL("fdatasync", int (int)); if (due()) die(); int r = real(fd); synced(fd); return r; }
int ftruncate64(int fd, off64_t n) { REAL("ftruncate64", int (int, off64_t)); if (due()) die(); return real(fd, n); }
int ftruncate(int fd, off_t n) { return ftruncate64(fd, n); }
int unlink(const char *p) { REAL("unlink", int (const char *)); if (due()) die(); return real(p); }
int rename(const char *a, const char *b) {
    REAL("rename", int (const char *, const char *));
    if (due()) die();
    return real(a, b);
}
int link(const char *a, const char *b) {
    REAL("link", int (const char *, const char *));
    if (due()) die();
    return real(a, b);
}
int linkat(int x, const char *a, int y, const char *b, int flags) {
    REAL("linkat", int (int, const char *, int, const char *, int));
    if (due()) die();
    return real(x, a, y, b, flags);
}
int close(int fd) { REAL("close", int (int)); synced(fd); return real(fd); }

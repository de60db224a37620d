/* Fail or kill at the Nth call that writes to or syncs a file below a folder. Loaded with LD_PRELOAD.
 *
 * Python and the SQLite inside apsw both call these functions of the C library, so one counter covers every write path.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { COUNT, FAIL, KILL_BEFORE, KILL_WITHIN, FAIL_WITHIN };

/* What a call does: only a write can be torn, and a kill within a sync leaves the file as a kill before it does. */
enum kind { WRITES = 'w', SYNCS = 's', CHANGES = 'c', SENDS = 'n' };

static char folder[4096], kinds[1 << 16];
static size_t folder_length;
static long armed_at = -1, calls;
static int action, code, lasting;

void soak_arm(const char *below, long at, int what, int error, int forever) {
    snprintf(folder, sizeof folder, "%s", below);
    folder_length = strlen(folder);
    armed_at = at;
    action = what;
    code = error;
    lasting = forever;
    calls = 0;
    memset(kinds, 0, sizeof kinds);
}

void soak_disarm(void) { folder_length = 0; }

long soak_calls(void) { return calls; }

const char *soak_kinds(void) { return kinds; }

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int starts(const char *path) { return folder_length && strncmp(path, folder, folder_length) == 0; }

/* A path inside an opened folder is /proc/self/fd/N/name, or a name beside a descriptor. */
static int below_at(int fd, const char *path) {
    char folder_of[4096], link[64];
    if (!folder_length) return 0;
    if (sscanf(path, "/proc/self/fd/%d", &fd) != 1 && path[0] == '/') return starts(path);
    if (fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, folder_of, sizeof folder_of - 1);
    if (length < 0) return 0;
    folder_of[length] = 0;
    return starts(folder_of);
}

static int below(const char *path) { return below_at(-1, path); }

static int watched(int fd) {
    char link[64], path[4096];
    struct stat found;
    if (!folder_length || fstat(fd, &found) != 0 || !(S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return starts(path);
}

/* A connection to a server, as a migration has one. */
static int connected(int fd) {
    struct stat found;
    return folder_length && fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode);
}

/* Return what to do with this call: COUNT means that it goes on. */
static int decide(int is_watched, enum kind kind) {
    if (!is_watched) return COUNT;
    if (calls < (long)sizeof kinds - 1) kinds[calls] = kind;
    calls++;
    if (action == COUNT || calls < armed_at || (calls > armed_at && !lasting)) return COUNT;
    if (action == KILL_BEFORE) die();
    return action;
}

static int failed(void) {
    errno = code;
    return -1;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A write that is torn stores half of its bytes. */
#define WRITE(half, whole)                                      \
    int what = decide(watched(fd), WRITES);                     \
    if (what == FAIL) return failed();                          \
    if (what == KILL_WITHIN) { (void)!(half); die(); }          \
    if (what == FAIL_WITHIN) {                                  \
        if (calls > armed_at || size < 2) return failed();      \
        return half;                                            \
    }                                                           \
    return whole

/* Other calls have no half: a kill within one comes right after it. */
#define OTHER(kind, is_watched, whole)                                      \
    int what = decide(is_watched, kind);                                    \
    if (what == FAIL || what == FAIL_WITHIN) return failed();               \
    int result = whole;                                                     \
    if (what == KILL_WITHIN) die();                                         \
    return result

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    WRITE(real(fd, data, size / 2), real(fd, data, size));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    WRITE(real(fd, data, size / 2, at), real(fd, data, size, at));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    WRITE(real(fd, data, size / 2, at), real(fd, data, size, at));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    size_t size = 0;
    WRITE(real(fd, parts, 1), real(fd, parts, count));
}

int fsync(int fd) {
    REAL(fsync);
    OTHER(SYNCS, watched(fd), real(fd));
}

int fdatasync(int fd) {
    REAL(fdatasync);
    OTHER(SYNCS, watched(fd), real(fd));
}

int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    OTHER(CHANGES, watched(fd), real(fd, size));
}

int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    OTHER(CHANGES, watched(fd), real(fd, size));
}

int rename(const char *from, const char *to) {
    REAL(rename);
    OTHER(CHANGES, below(to), real(from, to));
}

int renameat(int one, const char *from, int other, const char *to) {
    REAL(renameat);
    OTHER(CHANGES, below_at(other, to), real(one, from, other, to));
}

int renameat2(int one, const char *from, int other, const char *to, unsigned int flags) {
    REAL(renameat2);
    OTHER(CHANGES, below_at(other, to), real(one, from, other, to, flags));
}

int link(const char *from, const char *to) {
    REAL(link);
    OTHER(CHANGES, below(to), real(from, to));
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    OTHER(CHANGES, below(path), real(path, mode));
}

int mkdirat(int fd, const char *path, mode_t mode) {
    REAL(mkdirat);
    OTHER(CHANGES, below_at(fd, path), real(fd, path, mode));
}

int unlink(const char *path) {
    REAL(unlink);
    OTHER(CHANGES, below(path), real(path));
}

int unlinkat(int fd, const char *path, int flags) {
    REAL(unlinkat);
    OTHER(CHANGES, below_at(fd, path), real(fd, path, flags));
}

int rmdir(const char *path) {
    REAL(rmdir);
    OTHER(CHANGES, below(path), real(path));
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(send);
    int what = decide(connected(fd), SENDS);
    if (what == FAIL || what == FAIL_WITHIN) return failed();
    ssize_t result = real(fd, data, size, flags);
    if (what == KILL_WITHIN) die();
    return result;
}

/* A disk that forgets every byte that was not synced.
 *
 * Preloaded into a process, it keeps beside the files below POWERCUT_ROOT a second state, POWERCUT_DISK: what a disk
 * would hold if the power went now. A file's bytes get there when fsync or fdatasync of that file returns, as of that
 * moment; write, pwrite, writev, ftruncate and even mmap need not be watched, as none of them reaches the disk by
 * itself. With POWERCUT_STRICT=1 a name (of a new, renamed or removed file) gets there only when its directory was
 * synced; otherwise names are durable at once, as with most journaling file systems.
 *
 *   POWERCUT_DISK/data/<id>     the synced bytes of one file; replaced by rename, so that killing the process in the
 *                               middle leaves the bytes before or after
 *   POWERCUT_DISK/names/<path>  a symbolic link to <id>; a directory whose own name was not synced has mode 0700, and
 *                               all below it is unreachable
 *   POWERCUT_DISK/active        the shim was loaded
 *
 * One process per disk. Build: cc -shared -fPIC -O2 -o powercut.so powercut.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 4096, LONG = PATH_MAX + 300 };

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_unlinkat)(int, const char *, int);
static int (*real_rename)(const char *, const char *);
static int (*real_renameat)(int, const char *, int, const char *);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX], disk[PATH_MAX];
static int strict, on;

/* A file is known by its inode until its last name goes: the kernel then gives the number to another file. */
static struct { dev_t dev; ino_t ino; int id; } files[FILES];
static int file_count, last_id;

static void die(const char *what)
{
    fprintf(stderr, "powercut: %s: %s\n", what, strerror(errno));
    _exit(97);
}

static void join(char *out, const char *a, const char *b, const char *c)
{
    if (snprintf(out, LONG, "%s%s%s", a, b, c) >= LONG) { errno = ENAMETOOLONG; die(a); }
}

__attribute__((constructor)) static void start(void)
{
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    real_unlinkat = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
    real_rename = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    real_renameat = (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
    const char *r = getenv("POWERCUT_ROOT"), *d = getenv("POWERCUT_DISK"), *s = getenv("POWERCUT_STRICT");
    if (!r || !d) return;
    if (!realpath(r, root)) die(r);
    if (!realpath(d, disk)) die(d);
    strict = s && *s == '1';
    char path[LONG];
    join(path, disk, "/data", "");
    if (mkdir(path, 0755) && errno != EEXIST) die(path);
    join(path, disk, "/names", "");
    if (mkdir(path, 0755) && errno != EEXIST) die(path);
    join(path, disk, "/active", "");
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) die(path);
    close(fd);
    on = 1;
}

static int find(const struct stat *st)
{
    for (int i = 0; i < file_count; i++)
        if (files[i].dev == st->st_dev && files[i].ino == st->st_ino) return i;
    return -1;
}

static int identify(const struct stat *st)
{
    int i = find(st);
    if (i < 0) {
        if (file_count == FILES) { errno = ENFILE; die("too many files"); }
        i = file_count++;
        files[i].dev = st->st_dev, files[i].ino = st->st_ino, files[i].id = ++last_id;
    }
    return files[i].id;
}

static void forget(const struct stat *st)
{
    int i = find(st);
    if (i >= 0 && st->st_nlink <= 1) files[i] = files[--file_count];
}

/* The part of a path below the root, "" for the root itself, NULL if it is elsewhere. */
static const char *below(const char *path)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == 0) ? path + n : NULL;
}

static int path_of(int fd, char *out)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0) return -1;
    out[n] = 0;
    return 0;
}

static int absolute(int dirfd, const char *path, char *out)
{
    if (*path == '/') {
        join(out, path, "", "");
        return 0;
    }
    char base[PATH_MAX];
    if (dirfd == AT_FDCWD ? getcwd(base, sizeof base) == NULL : path_of(dirfd, base)) return -1;
    join(out, base, "/", path);
    return 0;
}

/* The directories above the last "/" of a path. Their own names are durable at once unless strict. */
static void make_directories(const char *relative)
{
    char path[LONG];
    join(path, disk, "/names", relative);
    for (char *p = path + strlen(disk) + 7; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        if (mkdir(path, strict ? 0700 : 0755) && errno != EEXIST) die(path);
    }
}

/* names/<relative> -> id */
static void set_name(const char *relative, int id)
{
    char path[LONG], draft[LONG], target[32], old[32];
    snprintf(target, sizeof target, "%d", id);
    join(path, disk, "/names", relative);
    ssize_t n = readlink(path, old, sizeof old - 1);
    if (n > 0 && (size_t)n == strlen(target) && memcmp(old, target, n) == 0) return;
    join(draft, disk, "/draft-name", "");
    real_unlink(draft);
    if (symlink(target, draft) || real_rename(draft, path)) die(path);
}

static void remove_name(const char *relative)
{
    char path[LONG];
    join(path, disk, "/names", relative);
    if (real_unlink(path) && errno != ENOENT && chmod(path, 0700)) die(path);
}

static void sync_bytes(int fd, int id)
{
    static char buffer[1 << 20];
    char path[LONG], draft[LONG], number[32];
    snprintf(number, sizeof number, "%d", id);
    join(path, disk, "/data/", number);
    join(draft, disk, "/draft-data", "");
    int out = open(draft, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644), in = fd;
    if (out < 0) die(draft);
    ssize_t n;
    off_t at = 0;
    /* Read by the given descriptor where it can be read: to open and close the file once more would drop the POSIX
     * locks that the process has on it. */
    while ((n = pread(in, buffer, sizeof buffer, at)) != 0) {
        if (n < 0 && errno == EBADF && in == fd) {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            if ((in = open(link, O_RDONLY | O_CLOEXEC)) < 0) die(link);
            continue;
        }
        if (n < 0 || write(out, buffer, n) != n) die(draft);
        at += n;
    }
    if (in != fd) close(in);
    close(out);
    if (real_rename(draft, path)) die(path);
}

static void sync_names(const char *directory, const char *relative)
{
    char path[LONG], name[LONG], shadow[LONG];
    struct dirent *entry;
    struct stat st;
    join(name, relative, "/", "");
    make_directories(name);
    DIR *real = opendir(directory);
    if (!real) die(directory);
    while ((entry = readdir(real))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        join(path, directory, "/", entry->d_name);
        join(name, relative, "/", entry->d_name);
        if (lstat(path, &st)) continue;
        if (S_ISREG(st.st_mode)) set_name(name, identify(&st));
        if (S_ISDIR(st.st_mode)) {
            join(shadow, name, "/", "");
            make_directories(shadow);
            join(shadow, disk, "/names", name);
            if (chmod(shadow, 0755)) die(shadow);
        }
    }
    closedir(real);
    join(shadow, disk, "/names", relative);
    DIR *kept = opendir(shadow);
    if (!kept) die(shadow);
    while ((entry = readdir(kept))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        join(path, directory, "/", entry->d_name);
        join(name, relative, "/", entry->d_name);
        if (lstat(path, &st)) remove_name(name);
    }
    closedir(kept);
}

static void synced(int fd)
{
    int saved = errno;
    char path[PATH_MAX];
    struct stat st;
    const char *relative;
    if (!path_of(fd, path) && (relative = below(path)) && !fstat(fd, &st)) {
        pthread_mutex_lock(&mutex);
        if (S_ISDIR(st.st_mode) && strict) sync_names(path, relative);
        if (S_ISREG(st.st_mode)) {
            int id = identify(&st);
            sync_bytes(fd, id);
            if (!strict && st.st_nlink > 0) {
                make_directories(relative);
                set_name(relative, id);
            }
        }
        pthread_mutex_unlock(&mutex);
    }
    errno = saved;
}

int fsync(int fd)
{
    int result = real_fsync(fd);
    if (result == 0 && on) synced(fd);
    return result;
}

int fdatasync(int fd)
{
    int result = real_fdatasync(fd);
    if (result == 0 && on) synced(fd);
    return result;
}

static int removed(int dirfd, const char *given, int flags)
{
    char path[LONG];
    struct stat st;
    const char *relative = NULL;
    if (on && !absolute(dirfd, given, path) && (relative = below(path)) && lstat(path, &st)) relative = NULL;
    if (relative) pthread_mutex_lock(&mutex);
    int result = real_unlinkat(dirfd, given, flags);
    if (relative) {
        int saved = errno;
        if (result == 0 && S_ISREG(st.st_mode)) forget(&st);
        if (result == 0 && !strict) remove_name(relative);
        pthread_mutex_unlock(&mutex);
        errno = saved;
    }
    return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }

int unlinkat(int dirfd, const char *path, int flags) { return removed(dirfd, path, flags); }

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    char source[LONG], target[LONG];
    struct stat moved, replaced;
    const char *old = NULL, *new = NULL;
    if (on && !absolute(from_fd, from, source) && !absolute(to_fd, to, target)) old = below(source), new = below(target);
    if (!old || !new || lstat(source, &moved)) return real_renameat(from_fd, from, to_fd, to);
    pthread_mutex_lock(&mutex);
    int there = lstat(target, &replaced) == 0 && S_ISREG(replaced.st_mode);
    int result = real_renameat(from_fd, from, to_fd, to), saved = errno;
    if (result == 0) {
        if (there && replaced.st_ino != moved.st_ino) forget(&replaced);
        if (!strict) {
            char a[LONG], b[LONG];
            make_directories(new);
            join(a, disk, "/names", old);
            join(b, disk, "/names", new);
            if (real_rename(a, b) && errno != ENOENT) die(b);
        }
    }
    pthread_mutex_unlock(&mutex);
    errno = saved;
    return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

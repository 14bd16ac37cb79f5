/* Preloaded: makes the N-th of the calls that change what lies below .../checkpoints fail. FAILING_CALL: N, from 1;
   FAILING_WITH: "short" (a write takes one byte; other calls succeed), "wait" (it says so on stderr and never returns), or a number for
   errno. FAILING_PATH, if it is set: only paths with this in them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls;

static int concerns(const char* path) {
  const char* part = getenv("FAILING_PATH");
  return path != NULL && strstr(path, "/checkpoints/") != NULL && (part == NULL || strstr(path, part) != NULL);
}

static int file_concerns(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return concerns(path);
}

/* 0: go on. Otherwise 1: errno is set; 2: a short write. */
static int fails(void) {
  const char* which = getenv("FAILING_CALL");
  const char* with = getenv("FAILING_WITH");
  if (which == NULL || with == NULL || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != atoi(which)) return 0;
  if (strcmp(with, "short") == 0) return 2;
  if (strcmp(with, "wait") == 0) {
    syscall(SYS_write, STDERR_FILENO, "waiting\n", 8);
    for (;;) pause();
  }
  errno = atoi(with);
  return 1;
}

ssize_t write(int file, const void* bytes, size_t count) {
  if (file_concerns(file)) {
    const int how = fails();
    if (how == 1) return -1;
    if (how == 2 && count > 1) count = 1;
  }
  return syscall(SYS_write, file, bytes, count);
}

int fsync(int file) {
  if (file_concerns(file) && fails() == 1) return -1;
  return (int)syscall(SYS_fsync, file);
}

int rename(const char* from, const char* to) {
  if (concerns(from) && fails() == 1) return -1;
  return (int)syscall(SYS_rename, from, to);
}

int mkdir(const char* path, mode_t mode) {
  if (concerns(path) && fails() == 1) return -1;
  return (int)syscall(SYS_mkdir, path, mode);
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    if (concerns(path) && fails() == 1) return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return open(path, flags, mode);
}

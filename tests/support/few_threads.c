/* SPDX-License-Identifier: MIT */
#include "few_threads.h"

#include <pthread.h>

#include "test.h"

int threads_fail;

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
        void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *), void *arg) {
  return threads_fail ? threads_fail
                      : __real_pthread_create(thread, attr, start, arg);
}

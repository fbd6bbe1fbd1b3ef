#include "test.h"

#include <errno.h>

#include "cgroup/cgroup.h"

#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define ID_A "3f4e8c1d9b2a7065f1e2d3c4b5a69788796a5b4c3d2e1f0f9e8d7c6b5a493827"
#define ID_B "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "0f9e8d7c_6b5a_4938_2716_0504030201ff"

FIXTURE_PARSER(cgroup_parse, struct span)

static bool is_equal(struct span s, const char *text) {
  return s.len == strlen(text) && memcmp(s.text, text, s.len) == 0;
}

TEST(the_line_that_tells_most_is_chosen) {
  static const struct {
    const char *name;
    const char *text;
    size_t len;
    const char *path;
  } cases[] = {
      {"v2", TEXT("0::/system.slice/x.service\n"), "/system.slice/x.service"},
      {"v2 root", TEXT("0::/\n"), "/"},
      {"v1, systemd before memory",
       TEXT("2:memory:/m\n1:name=systemd:/system.slice/x.service\n"),
       "/system.slice/x.service"},
      {"v1, other order", TEXT("2:name=systemd:/s\n1:memory:/m\n"), "/s"},
      {"v1 without systemd", TEXT("3:cpu:/c\n2:memory:/m\n1:pids:/p\n"), "/m"},
      {"memory beside others", TEXT("2:cpu,memory,pids:/m\n0::/u\n"), "/m"},
      {"memory last of a list", TEXT("2:cpu,memory:/m\n0::/u\n"), "/m"},
      {"hybrid, systemd before unified", TEXT("1:name=systemd:/s\n0::/u\n"),
       "/s"},
      {"hybrid, memory before unified",
       TEXT("0::/system.slice/containerd.service\n4:memory:/docker/1\n"),
       "/docker/1"},
      {"a root yields to a place in another hierarchy",
       TEXT("9:name=systemd:/\n4:memory:/docker/1\n0::/\n"), "/docker/1"},
      {"the root of memory too", TEXT("4:memory:/\n0::/user.slice/x.scope\n"),
       "/user.slice/x.scope"},
      {"roots alone", TEXT("4:memory:/\n1:name=systemd:/\n0::/\n"), "/"},
      {"the first of two alike", TEXT("2:memory:/a\n1:memory:/b\n"), "/a"},
      {"colons in the path", TEXT("0::/a:b:c\n"), "/a:b:c"},
      {"colons in a v1 path", TEXT("1:name=systemd:/x:cri:1\n"), "/x:cri:1"},
      {"blanks in the path", TEXT("0::/my group/a b\n"), "/my group/a b"},
      {"deleted", TEXT("0::/system.slice/x.service (deleted)\n"),
       "/system.slice/x.service"},
      {"deleted in the middle", TEXT("0::/x (deleted)/y\n"), "/x (deleted)/y"},
      {"deleted twice: one is its name", TEXT("0::/x (deleted) (deleted)\n"),
       "/x (deleted)"},
      {"above our namespace", TEXT("0::/../../x\n"), "/../../x"},
      {"bytes with the high bit", TEXT("0::/\xff\x80\r\n"), "/\xff\x80\r"},
      {"malformed lines are passed over",
       TEXT("\nx\n:\n::\n1:\n1:memory\n1:memory:\n1:memory:m\n-1:memory:/m\n"
            "99999999999:memory:/m\n 1:memory:/m\n1 :memory:/m\n0::/u\n"),
       "/u"},
      {"near-miss names",
       TEXT("8:name=systemdx:/a\n7:xname=systemd:/b\n6:systemd:/c\n"
            "5:memoryx:/d\n4:name=memory:/e\n3:Memory:/f\n0::/u\n"),
       "/u"},
      {"an unnamed line is unified only with id 0", TEXT("1::/x\n0::/u\n"),
       "/u"},
      {"a line cut short is passed over",
       TEXT("2:memory:/m\n1:name=systemd:/system.sl"), "/m"},
  };
  struct span path;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    if (parse(cases[i].text, cases[i].len, &path) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (!is_equal(path, cases[i].path))
      fail_msg("%s: \"%.*s\"", cases[i].name, (int)path.len, path.text);
  }
}

TEST(a_text_without_a_usable_line_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"newline alone", TEXT("\n")},
      {"no newline", TEXT("0::/x")},
      {"no path", TEXT("0::\n")},
      {"relative path", TEXT("0::x\n")},
      {"one colon", TEXT("0:/x\n")},
      {"no id", TEXT("::/x\n")},
      {"other hierarchies", TEXT("3:cpu,cpuacct:/x\n2:name=other:/x\n")},
      {"NULs", TEXT("0\0::/x\n")},
      {"NUL before the path", TEXT("0::\0/x\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(captures_are_placed) {
  static const struct {
    const char *file;
    const char *path;
  } cases[] = {
      {"cgroup-6.18-hybrid", "/supervisor/worker"},
      {"cgroup-v1-service", "/system.slice/docker.service"},
      {"cgroup-v1-crio",
       "/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-poda5c1f8d5_1919_434d_add7_4afaafdaef89.slice/"
       "crio-5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c"
       ".scope"},
      {"cgroup-v2", "/user.slice/user-1000.slice/user@1000.service/user.slice/"
                    "podman-6696.scope"},
  };
  struct span path;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct span text = fixture_load(cases[i].file);

    assert_int_equal(parse(text.text, text.len, &path), 0);
    if (!is_equal(path, cases[i].path))
      fail_msg("%s: \"%.*s\"", cases[i].file, (int)path.len, path.text);
  }
}

/* Every line of a capture is whole or passed over, so what comes out is the
 * path of a line of it. */
TEST(a_text_cut_short_gives_no_path_cut_short) {
  static const char *const names[] = {"cgroup-6.18-hybrid", "cgroup-v1-service",
                                      "cgroup-v1-crio", "cgroup-v2"};
  struct span path;

  for (size_t i = 0; i < LENGTH(names); i++) {
    struct span text = fixture_load(names[i]);

    for (size_t cut = 0; cut < text.len; cut++) {
      if (parse(text.text, cut, &path) != 0)
        continue;
      if (path.text[path.len] != '\n' || path.text[-1] != ':')
        fail_msg("%s, %zu bytes: \"%.*s\"", names[i], cut, (int)path.len,
                 path.text);
    }
  }
}

/* The unit that a path names; NULL for none. */
struct path_case {
  const char *name;
  const char *path;
  const char *unit;
  const char *slice;
  const char *container;
};

static const struct path_case path_cases[] = {
    {"root", "/", NULL, NULL, NULL},
    {"empty", "", NULL, NULL, NULL},
    {"service", "/system.slice/ssh.service", "ssh.service", "system.slice",
     NULL},
    {"below a service", "/system.slice/x.service/worker/1", "x.service",
     "system.slice", NULL},
    {"a unit of another manager below a unit",
     "/system.slice/x.service/y.service", "x.service", "system.slice", NULL},
    {"template", "/system.slice/system-getty.slice/getty@tty1.service",
     "getty@tty1.service", "system-getty.slice", NULL},
    {"user manager's service",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.scope",
     "user@1000.service", "user-1000.slice", NULL},
    {"session", "/user.slice/user-1000.slice/session-4.scope",
     "session-4.scope", "user-1000.slice", NULL},
    {"init", "/init.scope", "init.scope", "-.slice", NULL},
    {"service in no slice", "/x.service/y", "x.service", "-.slice", NULL},
    {"socket", "/system.slice/x.socket", "x.socket", "system.slice", NULL},
    {"mount", "/system.slice/srv-data.mount", "srv-data.mount", "system.slice",
     NULL},
    {"swap", "/system.slice/dev-sda2.swap", "dev-sda2.swap", "system.slice",
     NULL},
    {"units that hold no process", "/system.slice/x.timer", NULL,
     "system.slice", NULL},
    {"slice alone", "/system.slice", NULL, "system.slice", NULL},
    {"no unit behind the slice", "/system.slice/x", NULL, "system.slice", NULL},
    {"suffix alone is no name", "/system.slice/.service", NULL, "system.slice",
     NULL},
    {"suffix in the middle", "/system.slice/x.service.d", NULL, "system.slice",
     NULL},
    {"slashes", "//system.slice///x.service//", "x.service", "system.slice",
     NULL},
    {"escapes stay",
     "/system.slice/system-foo\\x2dbar.slice/foo\\x2dbar@a\\x20b.service",
     "foo\\x2dbar@a\\x20b.service", "system-foo\\x2dbar.slice", NULL},
    {"underscore before a name of the kernel's", "/_cpu.slice/_memory.service",
     "memory.service", "cpu.slice", NULL},
    {"underscore before an underscore", "/system.slice/__x.service",
     "_x.service", "system.slice", NULL},
    {"blanks", "/my group/x y.service", NULL, NULL, NULL},
    {"blanks in a unit", "/system.slice/x y.service", "x y.service",
     "system.slice", NULL},
    {"name with colons", "/system.slice/a:b.service", "a:b.service",
     "system.slice", NULL},

    {"above our namespace", "/../../x", NULL, NULL, NULL},
    {"above our namespace, from the root", "/../../system.slice/x.service",
     "x.service", "system.slice", NULL},
    {"beside our namespace, in a slice unseen", "/../x.service", "x.service",
     NULL, NULL},

    {"Docker, cgroupfs", "/docker/" ID_A, NULL, NULL, ID_A},
    {"Docker, cgroupfs, below", "/docker/" ID_A "/init", NULL, NULL, ID_A},
    {"Docker, systemd", "/system.slice/docker-" ID_A ".scope",
     "docker-" ID_A ".scope", "system.slice", ID_A},
    {"Docker in Docker", "/docker/" ID_A "/docker/" ID_B, NULL, NULL, ID_B},
    {"a unit inside a container is not ours",
     "/docker/" ID_A "/system.slice/cron.service", NULL, NULL, ID_A},
    {"ECS", "/ecs/0123456789abcdef0123456789abcdef/" ID_A, NULL, NULL, ID_A},
    {"Kubernetes, cgroupfs", "/kubepods/burstable/pod" POD "/" ID_A, NULL, NULL,
     ID_A},
    {"Kubernetes, containerd",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD
     ".slice/cri-containerd-" ID_A ".scope",
     "cri-containerd-" ID_A ".scope", "kubepods-burstable-pod" POD ".slice",
     ID_A},
    {"Kubernetes, CRI-O",
     "/kubepods.slice/kubepods-pod" POD ".slice/crio-" ID_A ".scope",
     "crio-" ID_A ".scope", "kubepods-pod" POD ".slice", ID_A},
    {"Kubernetes, CRI-O, cgroupfs", "/kubepods/pod" POD "/crio-" ID_A, NULL,
     NULL, ID_A},
    {"Kubernetes, Docker",
     "/kubepods.slice/kubepods-pod" POD ".slice/docker-" ID_A ".scope",
     "docker-" ID_A ".scope", "kubepods-pod" POD ".slice", ID_A},
    {"Kubernetes, static pod",
     "/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod8daa50c3a64c9ff60bb9eab7b44b56fd.slice/"
     "cri-containerd-" ID_A ".scope",
     "cri-containerd-" ID_A ".scope",
     "kubepods-burstable-pod8daa50c3a64c9ff60bb9eab7b44b56fd.slice", ID_A},
    {"containerd told of another driver",
     "/system.slice/containerd.service/kubepods-burstable-pod" POD
     ".slice:cri-containerd:" ID_A,
     "containerd.service", "system.slice", ID_A},
    {"kind",
     "/system.slice/docker-" ID_A ".scope/kubelet.slice/"
     "kubelet-kubepods.slice/kubelet-kubepods-pod" POD
     ".slice/cri-containerd-" ID_B ".scope",
     "docker-" ID_A ".scope", "system.slice", ID_B},
    {"Podman", "/machine.slice/libpod-" ID_A ".scope", "libpod-" ID_A ".scope",
     "machine.slice", ID_A},
    {"Podman with crun", "/machine.slice/libpod-" ID_A ".scope/container",
     "libpod-" ID_A ".scope", "machine.slice", ID_A},
    {"Podman, rootless",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A
     ".scope/container",
     "user@1000.service", "user-1000.slice", ID_A},
    {"Podman, cgroupfs", "/libpod_parent/libpod-" ID_A, NULL, NULL, ID_A},
    {"Podman, split", "/system.slice/x.service/libpod-payload-" ID_A,
     "x.service", "system.slice", ID_A},
    {"Podman, in a pod",
     "/machine.slice/machine-libpod_pod_" ID_B ".slice/libpod-" ID_A ".scope",
     "libpod-" ID_A ".scope", "machine-libpod_pod_" ID_B ".slice", ID_A},
    {"conmon", "/machine.slice/libpod-conmon-" ID_A ".scope",
     "libpod-conmon-" ID_A ".scope", "machine.slice", NULL},
    {"conmon of a pod",
     "/machine.slice/machine-libpod_pod_" ID_B ".slice/libpod-conmon-" ID_A
     ".scope",
     "libpod-conmon-" ID_A ".scope", "machine-libpod_pod_" ID_B ".slice", NULL},
    {"a slice named as a container is",
     "/machine.slice/machine-" ID_A ".slice/x.service", "x.service",
     "machine-" ID_A ".slice", NULL},
    {"conmon of CRI-O",
     "/kubepods.slice/kubepods-pod" POD ".slice/crio-conmon-" ID_A ".scope",
     "crio-conmon-" ID_A ".scope", "kubepods-pod" POD ".slice", NULL},
    {"conmon in a container",
     "/docker/" ID_A "/machine.slice/libpod-conmon-" ID_B ".scope", NULL, NULL,
     ID_A},
    {"63 digits",
     "/docker/23456789abcdef0123456789abcdef0123456789abcdef"
     "0123456789abcdef0",
     NULL, NULL, NULL},
    {"65 digits", "/docker/0" ID_A, NULL, NULL, NULL},
    {"capital digits",
     "/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef"
     "0123456789abcdef",
     NULL, NULL, NULL},
    {"a letter too far",
     "/docker/g123456789abcdef0123456789abcdef0123456789abcdef"
     "0123456789abcdef",
     NULL, NULL, NULL},
    {"digits with something behind", "/docker/" ID_A "x", NULL, NULL, NULL},
    {"digits with another suffix", "/system.slice/docker-" ID_A ".mount",
     "docker-" ID_A ".mount", "system.slice", NULL},

    {"LXC", "/lxc.payload.web", NULL, NULL, "web"},
    {"LXC, below", "/lxc.payload.web/system.slice/x.service", NULL, NULL,
     "web"},
    {"LXD project", "/lxc.payload.proj_web/init.scope", NULL, NULL, "proj_web"},
    {"LXC 3.1", "/lxc.payload/web/init.scope", NULL, NULL, "web"},
    {"LXC, older", "/lxc/web-1/system.slice", NULL, NULL, "web-1"},
    {"LXC by a user", "/user.slice/user-0.slice/session-1.scope/lxc/web",
     "session-1.scope", "user-0.slice", "web"},
    {"LXC monitor", "/lxc.monitor.web", NULL, NULL, NULL},
    {"LXC 3.1 monitor", "/lxc.monitor/web", NULL, NULL, NULL},
    {"LXC without a name", "/lxc.payload.", NULL, NULL, NULL},
    {"LXC root", "/lxc", NULL, NULL, NULL},
    {"LXC in LXC", "/lxc.payload.a/lxc.payload.b", NULL, NULL, "b"},
    {"Docker in LXC", "/lxc.payload.web/docker/" ID_A, NULL, NULL, ID_A},

    {"nspawn service", "/machine.slice/systemd-nspawn@web.service/payload",
     "systemd-nspawn@web.service", "machine.slice", "web"},
    {"nspawn service, before payload was split off",
     "/machine.slice/systemd-nspawn@web.service", "systemd-nspawn@web.service",
     "machine.slice", "web"},
    {"nspawn service itself",
     "/machine.slice/systemd-nspawn@web.service/supervisor",
     "systemd-nspawn@web.service", "machine.slice", NULL},
    {"nspawn by hand", "/machine.slice/machine-web.scope/payload",
     "machine-web.scope", "machine.slice", "web"},
    {"nspawn by hand itself", "/machine.slice/machine-web.scope/supervisor",
     "machine-web.scope", "machine.slice", NULL},
    {"nspawn by hand, its scope called after the machine alone",
     "/machine.slice/web.scope/payload", "web.scope", "machine.slice", "web"},
    {"unit below that", "/machine.slice/web.scope/payload/init.scope",
     "web.scope", "machine.slice", "web"},
    {"scope with another subgroup", "/machine.slice/web.scope/payloads",
     "web.scope", "machine.slice", NULL},
    {"service with a subgroup called payload",
     "/system.slice/web.service/payload", "web.service", "system.slice", NULL},
    {"nspawn with an escaped name",
     "/machine.slice/machine-my\\x2dweb.scope/payload",
     "machine-my\\x2dweb.scope", "machine.slice", "my\\x2dweb"},
    {"unit called supervisor in nspawn",
     "/machine.slice/machine-web.scope/payload/supervisor", "machine-web.scope",
     "machine.slice", "web"},
    {"nspawn without a name", "/machine.slice/systemd-nspawn@.service",
     "systemd-nspawn@.service", "machine.slice", NULL},
    {"virtual machine of libvirt",
     "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator",
     "machine-qemu\\x2d1\\x2dvm.scope", "machine.slice", NULL},
};

typedef bool (*find_function)(struct span path, struct span *ret);

static void check_find(const struct path_case *c, const char *what,
                       find_function find, const char *want) {
  size_t len = strlen(c->path);
  char *copy = fixture_copy(c->path, len);
  struct span found;

  fixture_taint(&found, sizeof(found));
  if (find((struct span){copy, len}, &found) != (want != NULL))
    fail_msg("%s: %s %s", c->name, what, want ? "not found" : "found");
  if (want && !is_equal(found, want))
    fail_msg("%s: %s is \"%.*s\"", c->name, what, (int)found.len, found.text);
  if (!want)
    fixture_assert_untouched(&found, sizeof(found));
  free(copy);
}

TEST(a_path_names_unit_slice_and_container) {
  for (size_t i = 0; i < LENGTH(path_cases); i++) {
    const struct path_case *c = &path_cases[i];

    check_find(c, "unit", cgroup_unit, c->unit);
    check_find(c, "slice", cgroup_slice, c->slice);
    check_find(c, "container", cgroup_container, c->container);
  }
}

TEST(a_path_cut_short_is_read_to_its_end) {
  static const find_function finds[] = {cgroup_unit, cgroup_slice,
                                        cgroup_container};

  for (size_t i = 0; i < LENGTH(path_cases); i++)
    for (size_t len = 0; len < strlen(path_cases[i].path); len++) {
      char *copy = fixture_copy(path_cases[i].path, len);
      struct span found;

      for (size_t f = 0; f < LENGTH(finds); f++)
        if (finds[f]((struct span){copy, len}, &found) &&
            !is_equal(found, "-.slice"))
          assert_true(found.len > 0 && found.text >= copy &&
                      found.text + found.len <= copy + len);
      free(copy);
    }
}

TEST(the_memory_controller_has_a_path) {
  static const struct {
    const char *name, *text, *path; /* NULL: refused */
    bool is_v1;
  } cases[] = {
      {"unified", "0::/web\n", "/web", false},
      {"version 1", "9:name=systemd:/a\n4:memory:/b\n0::/c\n", "/b", true},
      {"root of version 1", "4:memory:/\n0::/c\n", "/", true},
      {"after the unified one", "0::/c\n4:cpu,memory:/b\n", "/b", true},
      {"other controllers", "9:name=systemd:/a\n4:cpu:/b\n0::/c\n", "/c",
       false},
      {"near miss", "4:memoryless:/b\n0::/c\n", "/c", false},
      {"removed", "0::/web (deleted)\n", "/web", false},
      {"outside", "0::/../web\n", "/../web", false},
      {"no controller", "9:name=systemd:/a\n4:cpu:/b\n", NULL, false},
      {"cut short", "0::/web", NULL, false},
      {"empty", "", NULL, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char *copy = fixture_copy(cases[i].text, strlen(cases[i].text));
    struct span path = {.text = NULL};
    bool is_v1 = !cases[i].is_v1;
    int rc = cgroup_parse_memory(copy, strlen(cases[i].text), &is_v1, &path);

    if (rc != (cases[i].path ? 0 : -EBADMSG))
      fail_msg("%s: %d", cases[i].name, rc);
    if (cases[i].path &&
        (!is_equal(path, cases[i].path) || is_v1 != cases[i].is_v1))
      fail_msg("%s: \"%.*s\"", cases[i].name, (int)path.len, path.text);
    free(copy);
  }
}

TEST(a_limit_is_a_number_of_bytes) {
  static const struct {
    const char *text;
    uint64_t bytes; /* 0: none */
  } cases[] = {{"4096\n", 4096},
               {"9223372036854771712\n", 9223372036854771712U},
               {"max\n", 0},
               {"", 0},
               {"4096", 0},
               {"4096 \n", 0},
               {"4096\n1\n", 0},
               {"-1\n", 0},
               {"18446744073709551616\n", 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char *copy = fixture_copy(cases[i].text, strlen(cases[i].text));
    uint64_t bytes = 0;

    assert_int_equal(cgroup_parse_limit(copy, strlen(cases[i].text), &bytes),
                     cases[i].bytes > 0);
    assert_int_equal(bytes, cases[i].bytes);
    free(copy);
  }
}

TEST(a_key_is_a_whole_word_of_a_line) {
  static const struct {
    const char *text;
    bool is_known;
    uint64_t value;
  } cases[] = {{"oom_kill 3\n", true, 3},
               {"oom 7\noom_kill 3\noom_group_kill 9\n", true, 3},
               {"oom_kill 0\n", true, 0},
               {"oom_kill_disable 1\nunder_oom 0\noom_kill 2\n", true, 2},
               {"oom_kill 18446744073709551615\n", true, UINT64_MAX},
               {"oom_kill 18446744073709551616\n", false, 0},
               {"oom_kills 3\n", false, 0},
               {"xoom_kill 3\n", false, 0},
               {" oom_kill 3\n", false, 0},
               {"oom_kill  3\n", false, 0},
               {"oom_kill -3\n", false, 0},
               {"oom_kill 3 kB\n", false, 0},
               {"oom_kill\n", false, 0},
               /* It was cut short. */
               {"oom_kill 3", false, 0},
               {"", false, 0}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    size_t len = strlen(cases[i].text);
    char *copy = fixture_copy(cases[i].text, len);
    uint64_t value = 0;

    if (cgroup_parse_keyed(copy, len, "oom_kill", &value) !=
            cases[i].is_known ||
        value != cases[i].value)
      fail_msg("\"%s\": %ju", cases[i].text, (uintmax_t)value);
    free(copy);
  }
}

"""The system calls that a locked process may make: by a list of allowed calls, or of refused ones.

The allow-list is for builders and for runners on the CPU device, where a kernel is native code in
the process. Compiler, SYCL runtime, torch and their threads need no more calls (seen by tracing
them), and system calls that do not exist yet are refused too. A GPU's driver is foreign code that
changes with every release, and device code makes no system calls. So a process with a driver may
make all calls that are not refused by name.

x86-64 numbers. The filter is in `seccomp.py`.
"""

from enum import StrEnum
from typing import Final


class CallFilter(StrEnum):
    """How the system calls of a process are filtered."""

    ALLOW_LISTED = "allow_listed"
    """Allows `ALLOWED` and the conditional calls, and nothing else."""
    REFUSE_LISTED = "refuse_listed"
    """Allows all calls but `REFUSED`, the conditional ones with their restrictions."""
    REFUSE_LISTED_BUT_PROGRAMS = "refuse_listed_but_programs"
    """As REFUSE_LISTED, but allows `PROGRAMS`, for processes that need compilers. They cannot begin
    a session, so that their starter finds all processes that they start."""


CLONE: Final = 56
"""Allowed for threads only."""
CLONE3: Final = 435
"""Always refused: its flags lie in memory, where a filter cannot look."""
MMAP: Final = 9
"""Refused for memory that is shared and anonymous, or grows like a stack: RLIMIT_DATA counts
neither."""
OPEN: Final = 2
OPENAT: Final = 257
"""Refused with O_TMPFILE: files without a name are not seen when the scratch folder is measured."""
IOCTL: Final = 16
"""Refused for putting characters into a terminal's input, and for asking a socket about the
network."""
FCNTL: Final = 72
"""Refused for letting a descriptor send signals, and for watching files."""
PRCTL: Final = 157
"""Allowed for the names of threads and of memory."""
OWN_PROCESS_ONLY: Final = {"kill": 62, "tgkill": 234}
"""Allowed if the first argument is the process itself; abort and raise use them."""
OWN_OR_ZERO: Final = {"prlimit64": 302, "sched_setaffinity": 203}
"""As above, 0 meaning oneself."""

ALLOWED: Final = {
    # First what is called most: filters of old kernels are read from the top.
    "futex": 202, "sched_yield": 24, "read": 0, "write": 1, "close": 3, "munmap": 11,
    "madvise": 28, "mprotect": 10, "brk": 12, "clock_gettime": 228, "gettid": 186,
    "rt_sigprocmask": 14, "clock_nanosleep": 230, "nanosleep": 35,
    "sched_getaffinity": 204, "getcpu": 309, "futex_waitv": 449,
    # Files: what lies where is Landlock's, or bubblewrap's.
    "fstat": 5, "stat": 4, "lstat": 6, "newfstatat": 262, "statx": 332, "lseek": 8,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "faccessat": 269,
    "faccessat2": 439, "readlink": 89, "readlinkat": 267, "getdents64": 217, "getcwd": 79,
    "flock": 73, "ftruncate": 77, "fallocate": 285, "fsync": 74, "fdatasync": 75,
    "fadvise64": 221, "mkdir": 83, "mkdirat": 258, "rmdir": 84, "unlink": 87, "unlinkat": 263,
    "rename": 82, "renameat": 264, "renameat2": 316, "umask": 95, "statfs": 137, "fstatfs": 138,
    "dup": 32, "dup2": 33, "dup3": 292, "close_range": 436, "pipe": 22, "pipe2": 293,
    "eventfd2": 290,
    # The conversation with the supervisor, over a socket that is there already.
    "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "shutdown": 48,
    "getsockopt": 55, "poll": 7, "ppoll": 271, "select": 23, "pselect6": 270,
    "epoll_create1": 291, "epoll_ctl": 233, "epoll_wait": 232, "epoll_pwait": 281,
    # Memory.
    "mremap": 25, "msync": 26, "mincore": 27, "membarrier": 324, "mlock": 149, "munlock": 150,
    "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239,
    # Threads and signals of its own.
    "rseq": 334, "set_robust_list": 273, "set_tid_address": 218, "exit": 60, "exit_group": 231,
    "rt_sigaction": 13, "rt_sigreturn": 15, "rt_sigpending": 127, "rt_sigtimedwait": 128,
    "rt_sigsuspend": 130, "sigaltstack": 131, "restart_syscall": 219, "pause": 34,
    "sched_getparam": 143, "sched_getscheduler": 145, "sched_get_priority_max": 146,
    "sched_get_priority_min": 147, "arch_prctl": 158,
    # What it is, where it is, what time it is.
    "getpid": 39, "getppid": 110, "getuid": 102, "geteuid": 107, "getgid": 104, "getegid": 108,
    "getresuid": 118, "getresgid": 120, "getgroups": 115, "getpgrp": 111, "capget": 125,
    "getrlimit": 97, "getrusage": 98, "uname": 63, "sysinfo": 99, "times": 100,
    "gettimeofday": 96, "time": 201, "clock_getres": 229, "getrandom": 318,
}  # fmt: skip

REFUSED: Final = {
    # New processes.
    "execve": 59, "execveat": 322, "fork": 57, "vfork": 58,
    # The network and other sockets; terminals.
    "socket": 41, "socketpair": 53, "connect": 42, "accept": 43, "bind": 49, "listen": 50,
    "accept4": 288, "vhangup": 153,
    # Other processes: their memory, files, signals, pace.
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440,
    "process_mrelease": 448, "migrate_pages": 256, "move_pages": 279, "kcmp": 312,
    "tkill": 200, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424,
    "pidfd_open": 434, "pidfd_getfd": 438, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "sched_setattr": 314, "ioprio_set": 251, "setsid": 112,
    "setpgid": 109,
    # Memory and messages with a name, that others find.
    "shmget": 29, "shmat": 30, "shmctl": 31, "shmdt": 67, "semget": 64, "semop": 65,
    "semctl": 66, "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243,
    "mq_notify": 244, "mq_getsetattr": 245,
    # Wide doors into the operating system.
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "memfd_secret": 447, "modify_ldt": 154,
    "personality": 135, "uselib": 134, "lookup_dcookie": 212, "nfsservctl": 180, "_sysctl": 156,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    # Attributes of files, which Landlock leaves alone, and news of what others do with them.
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93,
    "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "utimensat": 280,
    "futimesat": 261, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466,
    "file_setattr": 469, "inotify_init": 253, "inotify_init1": 294, "inotify_add_watch": 254,
    "fanotify_init": 300, "fanotify_mark": 301, "mknod": 133, "mknodat": 259,
    # Files without a name or cut short, by other doors; writing back the whole host's.
    "openat2": 437, "truncate": 76, "sync": 162, "syncfs": 306,
    # Mounts, namespaces, handles of files.
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "unshare": 272,
    "open_tree": 428, "open_tree_attr": 467, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "mount_setattr": 442, "statmount": 457, "listmount": 458,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "quotactl": 179, "quotactl_fd": 443,
    "acct": 163,
    # Who it is.
    "setuid": 105, "setgid": 106, "setreuid": 113, "setregid": 114, "setgroups": 116,
    "setresuid": 117, "setresgid": 119, "setfsuid": 122, "setfsgid": 123, "capset": 126,
    # The host.
    "init_module": 175, "delete_module": 176, "finit_module": 313, "kexec_load": 246,
    "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "syslog": 103,
    "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
}  # fmt: skip
"""Answered with EPERM, whatever the arguments."""

PROGRAMS: Final = ("execve", "fork", "vfork", "setpgid")
"""Of `REFUSED`, what starts a program; `clone` starts processes as well then."""

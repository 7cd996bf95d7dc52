/* The C interface for a store that lives outside this tree (plug-in ABI version 1).
 *
 * A plug-in is a shared object that exports one function, assay_plugin_entry. It returns a table
 * of function pointers (struct assay_plugin); the harness calls nothing else. Build it with no
 * library of ours, this header is all:
 *
 *   c++ -std=c++17 -O2 -fPIC -shared -o mystore.so mystore.cpp
 *   assay store check ./mystore.so                        # does it behave as it declares?
 *   assay compare --stores ./mystore.so,lmdb --workload ycsb-a
 *
 * adapters/example_plugin/ is a complete store to start from.
 *
 * RULES
 *  1. Ownership. What the harness passes in (keys, values, options, names, ranges, error buffers)
 *     belongs to the harness and is valid during that call only: copy what you keep. What you hand
 *     out by pointer belongs to you: a value from get() must stay unchanged and readable until the
 *     next call on the same session or its end; strings given to a callback until it returns;
 *     `name` and `version` until the process ends. Nobody frees the other side's memory.
 *  2. Threads. Calls on one session never overlap. Calls on different sessions of one store do:
 *     lock what they share. Calls that take the store itself (session_open, session_close, sync,
 *     checkpoint, settle, counters, effective_settings, footprint) may overlap with calls on its
 *     sessions. open and close do not overlap with anything on the same store. A session may be
 *     closed by another thread than the one that opened it. Several stores may be open at once.
 *  3. Order of life. open, then session_open, calls, session_close of every session, then close.
 *     A plug-in stays loaded until the process ends.
 *  4. Errors. A function that returns an int returns ASSAY_OK or one of the codes below, and on a
 *     failure writes one line into error->message (see assay_error). Do not print, do not exit, do
 *     not throw across this interface, do not install signal handlers.
 *  5. Durability. put, erase and apply return when the change has reached the durability class the
 *     store was opened with. Never acknowledge earlier. assay qualifies this by killing the process
 *     and by cutting the power; see assay_durability.
 *  6. Honesty. What the store cannot do it declares in its capabilities; do not emulate it. The
 *     harness never calls scan, rollback, or apply with several mutations unless declared.
 *  7. Growth of this interface. Structs passed by pointer begin with struct_size. Whoever fills a
 *     struct sets struct_size to its own sizeof; whoever reads it touches only what lies below
 *     struct_size. Later versions append fields, and never move or re-use one; a change that breaks
 *     this raises ASSAY_PLUGIN_ABI. Structs without struct_size (assay_bytes, assay_mutation,
 *     assay_name_value) never change within one ABI version. Booleans are int: 0 or 1. Text is
 *     NUL-terminated UTF-8.
 */
#ifndef ASSAY_PLUGIN_H
#define ASSAY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. A plug-in compiled against another one is refused with a message. */
#define ASSAY_PLUGIN_ABI 1u

/* Put it before assay_plugin_entry: exports the symbol even with -fvisibility=hidden. */
#define ASSAY_PLUGIN_EXPORT __attribute__((visibility("default")))

/* ---- Plain values -------------------------------------------------------------------------- */

/* What a function that returns int returns. */
enum assay_status {
  ASSAY_OK = 0,          /* done */
  ASSAY_FAILED = 1,      /* the store failed; the trial is void */
  ASSAY_UNSUPPORTED = 2, /* the store cannot do this; declare it in the capabilities as well */
  ASSAY_INVALID = 3,     /* a setting, key or value that the store refuses */
  ASSAY_NO_SPACE = 4     /* the disk or a quota is full */
};

/* What an acknowledged change survives, from weakest to strongest. */
enum assay_durability {
  ASSAY_VOLATILE = 0,     /* nothing promised */
  ASSAY_PROCESS = 1,      /* the death of the process (SIGKILL), not the loss of power */
  ASSAY_POWER_PREFIX = 2, /* power loss leaves a prefix of the commits; a suffix may be missing */
  ASSAY_POWER_LAST = 3,   /* power loss may take the last acknowledged commit only */
  ASSAY_POWER = 4         /* power loss takes nothing that was acknowledged */
};

/* What keys are. Byte order of the key is the order of a scan in both cases. */
enum assay_key_kind {
  ASSAY_KEY_BYTES = 0, /* any bytes, NUL included */
  ASSAY_KEY_U64 = 1    /* always 8 bytes, big-endian: byte order is numeric order */
};

/* A run of bytes. `data` may be NULL when `size` is 0. Not NUL-terminated. */
typedef struct assay_bytes {
  const void* data;
  size_t size;
} assay_bytes;

/* A name and its value, both text. */
typedef struct assay_name_value {
  const char* name;
  const char* value;
} assay_name_value;

enum assay_mutation_kind { ASSAY_PUT = 0, ASSAY_ERASE = 1 };

/* One change of a batch. `value` is empty for ASSAY_ERASE. */
typedef struct assay_mutation {
  uint32_t kind; /* enum assay_mutation_kind */
  uint32_t reserved;
  assay_bytes key;
  assay_bytes value;
} assay_mutation;

/* Where a failing function says why. The harness provides it, never NULL, with an empty message.
 * Write one line of at most sizeof message - 1 bytes, for example with snprintf. */
typedef struct assay_error {
  uint32_t struct_size; /* set by the harness */
  int32_t system_errno; /* errno of the system call that failed, 0 if none; optional */
  char message[504];    /* what happened, without a trailing full stop */
} assay_error;

/* ---- What a store can do, and how it is set -------------------------------------------------- */

/* Filled by capabilities(). The harness zeroes it and sets struct_size before the call. */
typedef struct assay_capabilities {
  uint32_t struct_size;
  int ordered;            /* scan works, in key order, from one snapshot */
  int rollback;           /* rollback works */
  int atomic_batches;     /* apply of several mutations is all or nothing */
  int concurrent_writers; /* writers in several threads make progress side by side */
  int larger_than_memory; /* data beyond the memory budget works */
  uint32_t durability;    /* classes it claims: a bit each, 1u << ASSAY_POWER and so on */
  uint32_t reserved;
  uint64_t min_key_bytes;   /* shortest key; 0 if the empty key works */
  uint64_t max_key_bytes;   /* longest key; at least 8 */
  uint64_t max_value_bytes; /* longest value; at least 1 */
} assay_capabilities;

/* One setting, for one durability class. A reader of a report wants to know why and says who. */
typedef struct assay_setting {
  uint32_t struct_size; /* sizeof(assay_setting), set by you */
  uint32_t reserved;
  const char* name;           /* unique within the store */
  const char* value;          /* the default for the class that was asked for */
  const char* reason;         /* why this value is right for the class */
  const char* source;         /* the document that says so; your own is fine */
  const char* const* choices; /* valid values, ended by NULL; NULL = free form, checked by open */
} assay_setting;

/* Receives one setting; copies what it keeps. */
typedef void (*assay_setting_sink)(void* context, const assay_setting* setting);

/* Receives one name and value; copies what it keeps. */
typedef void (*assay_name_value_sink)(void* context, const char* name, const char* value);

/* Receives one counter of the store. */
typedef void (*assay_counter_sink)(void* context, const char* name, double value);

/* How to open a store. */
typedef struct assay_open_options {
  uint32_t struct_size;
  uint32_t durability;              /* enum assay_durability; one that the store claims */
  uint32_t key_kind;                /* enum assay_key_kind; the same at every open of a directory */
  int create;                       /* 0: fail when there is no store in the directory yet */
  const char* directory;            /* exists and is yours alone; keep everything inside */
  const assay_name_value* settings; /* every setting you listed, the user's changes applied */
  size_t setting_count;
  uint64_t memory_bytes;   /* budget for your caches */
  uint64_t expected_bytes; /* hint: bytes of keys and values to come; 0 = unknown */
} assay_open_options;

/* A range to scan. Both ends are inclusive. */
typedef struct assay_scan_range {
  uint32_t struct_size;
  int from_start;    /* 1: no lower bound, `first` is ignored */
  int to_end;        /* 1: no upper bound, `last` is ignored */
  int backward;      /* 1: from the upper bound down */
  assay_bytes first; /* lower bound, also when scanning backward */
  assay_bytes last;  /* upper bound */
  uint64_t limit;    /* entries to visit at most; 0 = no limit */
} assay_scan_range;

/* Receives one entry of a scan. Returns 0 to end the scan. It calls nothing on the session that
 * scans; other threads may write through theirs meanwhile. */
typedef int (*assay_entry_sink)(void* context, assay_bytes key, assay_bytes value);

/* Files and bytes of the store on disk. */
typedef struct assay_footprint {
  uint32_t struct_size; /* set by the harness, which also zeroes the rest */
  uint32_t reserved;
  uint64_t files;
  uint64_t apparent_bytes;  /* sum of st_size */
  uint64_t allocated_bytes; /* sum of st_blocks * 512 */
} assay_footprint;

/* Yours to define: an open directory, and one thread's handle on it. */
typedef struct assay_store assay_store;
typedef struct assay_session assay_session;

/* ---- The table --------------------------------------------------------------------------------
 * Every pointer is required unless it says otherwise; the harness names the one that is missing. */
typedef struct assay_plugin {
  uint32_t struct_size; /* sizeof(assay_plugin) */
  uint32_t abi_version; /* ASSAY_PLUGIN_ABI */

  /* Name of the store in tables and plots: a-z, 0-9, '-' and '_', starting with a letter, at most
   * 32 characters. */
  const char* name;

  /* Version of the store as the loaded code knows it, for example "1.4.2". Not NULL, not empty. */
  const char* (*version)(void);

  /* Fills `out`. The answer never changes. */
  void (*capabilities)(assay_capabilities* out);

  /* Calls `sink` once for every setting, with its default for `durability` (enum
   * assay_durability). A store without settings calls it never. */
  void (*settings)(uint32_t durability, assay_setting_sink sink, void* context);

  /* Opens, and creates if options->create, the store in options->directory; sets *out. Recovers
   * whatever a crash left. On failure *out is ignored and nothing stays open. */
  int (*open)(const assay_open_options* options, assay_store** out, assay_error* error);

  /* Flushes and closes; frees the store even when it returns a failure. No session is left. */
  int (*close)(assay_store* store, assay_error* error);

  /* A handle for one thread at a time; sets *out. */
  int (*session_open)(assay_store* store, assay_session** out, assay_error* error);

  /* Ends a session. Cannot fail. */
  void (*session_close)(assay_session* session);

  /* Sets *found to 1 and *value if the key is there, else *found to 0; both are ASSAY_OK. The
   * whole value has been brought into memory (touch every page if you map files). */
  int (*get)(assay_session* session, assay_bytes key, assay_bytes* value, int* found,
             assay_error* error);

  /* Stores the value under the key, over what was there. */
  int (*put)(assay_session* session, assay_bytes key, assay_bytes value, assay_error* error);

  /* Removes the key. A key that is not there is not an error. */
  int (*erase)(assay_session* session, assay_bytes key, assay_error* error);

  /* Makes all `count` mutations in order, as one commit: all of them or, on failure, none. The
   * same key may come several times; the last one wins. Required if atomic_batches. */
  int (*apply)(assay_session* session, const assay_mutation* mutations, size_t count,
               assay_error* error);

  /* Begins a transaction, makes the mutations, and rolls it back: afterwards, nothing of it is to
   * be seen. Required if rollback. */
  int (*rollback)(assay_session* session, const assay_mutation* mutations, size_t count,
                  assay_error* error);

  /* Calls `sink` for the entries of the range, in order, from one snapshot: writes made during the
   * scan are not seen. Sets *visited to the number of calls of `sink`. Required if ordered. */
  int (*scan)(assay_session* session, const assay_scan_range* range, assay_entry_sink sink,
              void* context, uint64_t* visited, assay_error* error);

  /* Makes everything acknowledged so far survive power loss, whatever the class. */
  int (*sync)(assay_store* store, assay_error* error);

  /* Moves the log into the main structure, so that a reopen has as little as possible to replay. */
  int (*checkpoint)(assay_store* store, assay_error* error);

  /* Returns when no background work is pending. Optional: NULL if there is never any. */
  int (*settle)(assay_store* store, assay_error* error);

  /* Calls `sink` for every counter of the store. Optional. */
  void (*counters)(assay_store* store, assay_counter_sink sink, void* context);

  /* Calls `sink` for the settings IN FORCE, asked back from the open store, not from the options:
   * this is what a report shows. At least one. */
  int (*effective_settings)(assay_store* store, assay_name_value_sink sink, void* context,
                            assay_error* error);

  /* Files and bytes on disk. Optional: NULL lets the harness walk the directory. */
  int (*footprint)(assay_store* store, assay_footprint* out, assay_error* error);
} assay_plugin;

/* The one exported symbol. `abi_version` is what the harness speaks; return a table that lives as
 * long as the process, or NULL if you cannot serve that version. */
ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_entry(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_PLUGIN_H */

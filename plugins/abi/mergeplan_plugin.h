/* The border between mergeplan and its strategy plugins: plain C11 (and C++), plain data, one
 * exported symbol. A plugin decides in which order the denoising steps of a teacher are merged
 * (plan) and drives the training of the merges (execute). It never sees LibTorch, Abseil or the
 * planner's code, so any compiler can build it.
 *
 * A plugin is a shared library NAME.so with a manifest NAME.toml beside it
 * (plugins/host/README.md).
 *
 * Versions
 *   MAJOR changes when a plugin built before would break. Host and plugin must agree on it.
 *   MINOR grows when fields are appended to a struct, or functions to a table. Nothing is ever
 *   removed, reordered or given another meaning within a MAJOR. A plugin built against any MINOR
 *   loads into a host of any MINOR, as long as the host's is at least the plugin's
 *   `abi_minor_needed`.
 *   The first three fields of mergeplan_plugin, and the name of the exported function, stay what
 *   they are in every MAJOR.
 *
 *   1.1 added the limits max_merges and max_rounds to mergeplan_plan_request and
 *   mergeplan_solve_options, and achieved_teacher to mergeplan_evaluation.
 *
 * Sizes
 *   Every struct begins with `struct_size`, set by whoever made the struct to sizeof(the struct) as
 *   its own header states it. Whoever reads (or, for results, fills) a struct looks at struct_size
 *   first and touches only fields that lie inside it: see MERGEPLAN_HAS. Fields of 1.0 are always
 *   there; a smaller struct_size is an error. Arrays of structs are arrays of pointers.
 *
 * Memory
 *   Nothing is allocated on one side and freed on the other. Whoever passes a pointer owns what it
 *   points to and keeps it unchanged until the call returns, unless a note says otherwise; whoever
 *   receives it copies what it wants to keep. Text is UTF-8 and ends with NUL.
 *
 * Errors
 *   Functions that can fail return a mergeplan_code, 0 for success, and describe a failure in the
 *   caller's mergeplan_error. A plugin that cannot go on because a function of the host's sink or
 *   runtime failed returns that function's code. No exception may leave a function, and none may be
 *   aborted by longjmp.
 *
 * Steps and levels
 *   Step t (1..T) takes noise level t to level t-1; step 1 is the cleanest, level 0 is clean. A
 *   range [first, last] is written as two int32_t.
 *
 * Threads
 *   "caller's thread": call it only from the thread on which plan() or execute() was entered, and
 *   only until that call returns. "any thread": also from threads that the plugin started, again
 *   only until plan() or execute() returns. The host may run plan() and execute() of one plugin
 *   several times at once on several threads: keep no mutable global state.
 */
#ifndef MERGEPLAN_PLUGIN_H_
#define MERGEPLAN_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MERGEPLAN_ABI_MAJOR 1u
#define MERGEPLAN_ABI_MINOR 1u

/* Name of the one exported function, and how it is declared. */
#define MERGEPLAN_PLUGIN_SYMBOL "mergeplan_plugin_entry"
#if defined(_WIN32)
#define MERGEPLAN_PLUGIN_EXPORT __declspec(dllexport)
#else
#define MERGEPLAN_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* Does *pointer, a struct of `type`, reach as far as `field`? */
#define MERGEPLAN_HAS(type, pointer, field) \
  ((pointer)->struct_size >= offsetof(type, field) + sizeof((pointer)->field))

/* Abseil's canonical codes. Fields that hold one are int32_t. */
enum mergeplan_code {
  MERGEPLAN_OK = 0,
  MERGEPLAN_CANCELLED = 1,
  MERGEPLAN_UNKNOWN = 2,
  MERGEPLAN_INVALID_ARGUMENT = 3,
  MERGEPLAN_DEADLINE_EXCEEDED = 4,
  MERGEPLAN_NOT_FOUND = 5,
  MERGEPLAN_ALREADY_EXISTS = 6,
  MERGEPLAN_PERMISSION_DENIED = 7,
  MERGEPLAN_RESOURCE_EXHAUSTED = 8,
  MERGEPLAN_FAILED_PRECONDITION = 9,
  MERGEPLAN_ABORTED = 10,
  MERGEPLAN_OUT_OF_RANGE = 11,
  MERGEPLAN_UNIMPLEMENTED = 12,
  MERGEPLAN_INTERNAL = 13,
  MERGEPLAN_UNAVAILABLE = 14,
  MERGEPLAN_DATA_LOSS = 15,
  MERGEPLAN_UNAUTHENTICATED = 16
};

/* Where a failure is described. The caller owns it and the buffer, sets struct_size, text and
 * capacity, and may pass NULL when it only wants the code. The callee sets `code` (the same as it
 * returns) and writes at most `capacity` bytes, the last one NUL, cutting what does not fit. */
typedef struct mergeplan_error {
  uint32_t struct_size;
  int32_t code;
  uint64_t capacity; /* bytes at `text`, the NUL included; 0: text may be NULL */
  char* text;
} mergeplan_error;

/* ---- parameters ------------------------------------------------------------------------------ */

enum mergeplan_parameter_type {
  MERGEPLAN_PARAMETER_INTEGER = 0, /* decimal, fits int64_t */
  MERGEPLAN_PARAMETER_REAL = 1,    /* decimal, finite */
  MERGEPLAN_PARAMETER_FLAG = 2,    /* "true" or "false" */
  MERGEPLAN_PARAMETER_TEXT = 3
};

/* One parameter that a plugin understands; the manifest says the same. Static data of the plugin.
 */
typedef struct mergeplan_parameter_spec {
  uint32_t struct_size;
  int32_t type; /* mergeplan_parameter_type */
  const char* name;
  const char* default_value; /* NULL: none; then the parameter may be absent */
  const char* help;          /* one line */
  int32_t has_minimum;       /* integer and real only; 0: no bound */
  int32_t has_maximum;
  double minimum;
  double maximum;
} mergeplan_parameter_spec;

/* A value for the plugin. The host has checked it against the spec, passes only known names, each
 * at most once, and gives the default where the user gave nothing. */
typedef struct mergeplan_parameter {
  uint32_t struct_size;
  const char* name;
  const char* value;
} mergeplan_parameter;

/* ---- plans ----------------------------------------------------------------------------------- */

/* One merge: the jump from level `last` to level first-1, trained against its children, which cut
 * [first, last] into two or more ranges from the cleanest to the noisiest. A child is a single step
 * or another merge. */
typedef struct mergeplan_merge {
  uint32_t struct_size;
  int32_t first;
  int32_t last;
  int32_t round; /* 1 + the largest round of the children (a single step has 0); 0 where unknown */
  int32_t child_count;
  const int32_t* children; /* 2 child_count values: first, last of each */
} mergeplan_merge;

/* A whole plan, checked: merges have children before parents and rounds filled in; the blocks (N of
 * them, from the clean end) cut 1..teacher_steps. */
typedef struct mergeplan_plan {
  uint32_t struct_size;
  int32_t teacher_steps;
  int32_t student_steps; /* N, the number of blocks */
  int32_t merge_count;
  const mergeplan_merge* const* merges;
  const int32_t* blocks; /* 2 N values: first, last of each */
} mergeplan_plan;

/* Receives a plan, so that no list has to cross the border. Each merge is added once, in any order;
 * the blocks are set once, a single step being a block too. What is wrong with the plan as a whole
 * is found after plan() has returned. Caller's thread. */
typedef struct mergeplan_plan_sink {
  uint32_t struct_size;
  void* context; /* first argument of the functions */
  /* children: 2 child_count values, as in mergeplan_merge. */
  int32_t (*add_merge)(void* context, int32_t first, int32_t last, const int32_t* children,
                       int32_t child_count, mergeplan_error* error);
  /* ranges: 2 count values: first, last of each block. */
  int32_t (*set_blocks)(void* context, const int32_t* ranges, int32_t count,
                        mergeplan_error* error);
} mergeplan_plan_sink;

/* ---- what is asked of plan() ----------------------------------------------------------------- */

enum mergeplan_budget_kind {
  MERGEPLAN_BUDGET_FLOW = 0, /* gamma = exp(-2 train_time n) */
  MERGEPLAN_BUDGET_SGD = 1   /* gamma = (1 - 2 lr feature_norm n)^iterations */
};

/* Where the student of a merge starts. */
enum mergeplan_init {
  MERGEPLAN_INIT_CHILD = 0,
  MERGEPLAN_INIT_TEACHER = 1,
  MERGEPLAN_INIT_JUMP = 2,
  MERGEPLAN_INIT_CHILD_JUMP = 3
};

enum mergeplan_reference {
  MERGEPLAN_REFERENCE_SURROGATE = 0,
  MERGEPLAN_REFERENCE_TEACHER = 1,
  MERGEPLAN_REFERENCE_DATA = 2
};

enum mergeplan_space { MERGEPLAN_SPACE_NARY = 0, MERGEPLAN_SPACE_BINARY = 1 };

/* The question. Owned by the host, valid until plan() returns, all numbers finite. */
typedef struct mergeplan_plan_request {
  uint32_t struct_size;
  int32_t teacher_steps;   /* T >= 1 */
  int32_t student_steps;   /* N, 1..T: the number of blocks wanted */
  int32_t dimensions;      /* d; 0 when the data's spectrum is not known */
  const double* alpha;     /* T+1 values, level 0 (clean) .. T; alpha/sigma falls strictly */
  const double* sigma;     /* T+1 values */
  double data_scale;       /* lambda = variance / data_scale^2 in the coordinates of alpha, sigma */
  const double* variances; /* d values >= 0, of the data as the user has it; NULL when d = 0 */
  const double* weights;   /* d values >= 0, or NULL: all 1 */
  int32_t budget_kind;     /* mergeplan_budget_kind; the budget of one merge */
  int32_t batch;           /* sgd */
  double train_time;       /* flow: s > 0 */
  double lr;               /* sgd: > 0 */
  double feature_norm;     /* sgd: squared norm of the feature that feeds the operator */
  int64_t iterations;      /* sgd: updates per merge */
  int32_t init;            /* mergeplan_init */
  int32_t reference;       /* mergeplan_reference */
  int32_t space;           /* mergeplan_space */
  int32_t parameter_count;
  const mergeplan_parameter* const* parameters;
  double gap;                /* relative gap at which a search may stop; 0: proof wanted */
  double time_limit_seconds; /* of a search */
  /* since 1.1; where they lie outside of struct_size, any number */
  int32_t max_merges; /* the plan may have at most so many merges; 0: any number */
  int32_t max_rounds; /* and so many rounds; 0: any number */
} mergeplan_plan_request;

/* ---- what the host offers to plan() ---------------------------------------------------------- */

/* Bits of mergeplan_solve_options.fields: which fields count; the others are as in the request. */
enum mergeplan_solve_field {
  MERGEPLAN_SOLVE_STUDENT_STEPS = 1,
  MERGEPLAN_SOLVE_INIT = 2,
  MERGEPLAN_SOLVE_REFERENCE = 4,
  MERGEPLAN_SOLVE_SPACE = 8,
  MERGEPLAN_SOLVE_GAP = 16,
  MERGEPLAN_SOLVE_TIME_LIMIT = 32,
  MERGEPLAN_SOLVE_MAX_MERGES = 64, /* since 1.1 */
  MERGEPLAN_SOLVE_MAX_ROUNDS = 128 /* since 1.1 */
};

typedef struct mergeplan_solve_options {
  uint32_t struct_size;
  uint32_t fields; /* mergeplan_solve_field, or-ed */
  int32_t student_steps;
  int32_t init;
  int32_t reference;
  int32_t space;
  double gap;
  double time_limit_seconds;
  int32_t max_merges; /* since 1.1; 0: any number */
  int32_t max_rounds; /* since 1.1; 0: any number */
} mergeplan_solve_options;

enum mergeplan_solve_status {
  MERGEPLAN_SOLVE_OPTIMAL = 0,
  MERGEPLAN_SOLVE_WITHIN_GAP = 1,
  MERGEPLAN_SOLVE_TIME_LIMIT_REACHED = 2,
  MERGEPLAN_SOLVE_INTERRUPTED = 3
};

/* Filled by the host; the caller owns it and sets struct_size. */
typedef struct mergeplan_solution {
  uint32_t struct_size;
  int32_t status; /* mergeplan_solve_status */
  double objective;
  double lower_bound;
} mergeplan_solution;

enum mergeplan_log_level {
  MERGEPLAN_LOG_INFO = 0,
  MERGEPLAN_LOG_WARNING = 1,
  MERGEPLAN_LOG_ERROR = 2
};

/* The host's planner. Owned by the host, valid until plan() returns; `context` is the first
 * argument of every function. */
typedef struct mergeplan_planner {
  uint32_t struct_size;
  void* context;
  /* The best plan for the request, into `sink` (merges first, then the blocks). `options` may be
   * NULL: as requested; `solution` may be NULL. FAILED_PRECONDITION when the spectrum is not known.
   * Caller's thread. */
  int32_t (*solve)(void* context, const mergeplan_solve_options* options,
                   const mergeplan_plan_sink* sink, mergeplan_solution* solution,
                   mergeplan_error* error);
  /* The predicted error of a plan: sum_k w_k (tau_k - V_k)^2 for the request's reference. `merges`
   * in any order, their rounds are not read; `blocks` has 2 block_count values. INVALID_ARGUMENT
   * says what is wrong with the plan. Caller's thread. */
  int32_t (*evaluate_tree)(void* context, const mergeplan_merge* const* merges, int32_t merge_count,
                           const int32_t* blocks, int32_t block_count, double* objective,
                           mergeplan_error* error);
  /* Reads a plan file of mergeplan (TOML or JSON) and checks that it was made for the noise
   * schedule, student steps and start of the request. Caller's thread. */
  int32_t (*parse_plan)(void* context, const char* path, const mergeplan_plan_sink* sink,
                        mergeplan_error* error);
  /* One line for the user. Any thread. */
  void (*log)(void* context, int32_t level, const char* text);
  /* Non-zero when the user wants to stop: return MERGEPLAN_CANCELLED soon. Any thread. */
  int32_t (*cancelled)(void* context);
  /* A struct that a later header defines under this name, or NULL. Valid as long as the table. Any
   * thread. */
  const void* (*get_extension)(void* context, const char* name);
} mergeplan_planner;

/* ---- what the host offers to execute() ------------------------------------------------------- */

/* What the training of one merge brought. Filled by the host; the caller owns it and sets
 * struct_size. NaN where the runtime cannot say. */
typedef struct mergeplan_train_result {
  uint32_t struct_size;
  int32_t restored; /* non-zero: taken from a checkpoint of an earlier run, not trained now */
  int64_t updates;
  double initial_loss;
  double final_loss;
  double seconds;
} mergeplan_train_result;

/* Filled by the host; the caller owns it and sets struct_size. NaN where the runtime cannot say. */
typedef struct mergeplan_evaluation {
  uint32_t struct_size;
  int32_t merges_trained;
  double predicted;        /* objective of the plan in the linear model */
  double achieved;         /* the same of what was trained */
  double achieved_teacher; /* since 1.1: the same against the teacher's own steps, whatever the
                              request's reference */
} mergeplan_evaluation;

/* The runtime that trains. Owned by the host, valid until execute() returns; `context` is the first
 * argument of every function. A merge is named by its range and must be one of the plan's: else
 * NOT_FOUND. */
typedef struct mergeplan_runtime {
  uint32_t struct_size;
  void* context;
  /* Trains one merge with the run's budget. FAILED_PRECONDITION when a child that is a merge has
   * not been trained, ALREADY_EXISTS when this one has been in this execute(), CANCELLED when the
   * user stopped it; then it counts as not trained. `result` may be NULL. Caller's thread. */
  int32_t (*train_merge)(void* context, int32_t first, int32_t last, mergeplan_train_result* result,
                         mergeplan_error* error);
  /* Trains `count` merges that do not depend on each other, together where the runtime can; same
   * errors, and none counts as trained after one. `ranges` has 2 count values; `results` is NULL
   * or has `count` pointers, each of which may be NULL. Caller's thread. */
  int32_t (*train_round)(void* context, const int32_t* ranges, int32_t count,
                         mergeplan_train_result* const* results, mergeplan_error* error);
  /* Compares the student as it stands (untrained blocks are made of what has been trained inside
   * them, and of teacher steps) with the reference. Caller's thread. */
  int32_t (*evaluate)(void* context, mergeplan_evaluation* evaluation, mergeplan_error* error);
  /* Keeps the trained operator of a merge until release, also when no later merge needs it any
   * more. `snapshot` receives a number other than 0. The plugin releases what it took before
   * execute() returns OK; what is left after a failure is released by the host. Caller's thread. */
  int32_t (*snapshot)(void* context, int32_t first, int32_t last, uint64_t* snapshot,
                      mergeplan_error* error);
  /* Gives a snapshot back; NOT_FOUND for a number that is not held. Caller's thread. */
  int32_t (*release)(void* context, uint64_t snapshot, mergeplan_error* error);
  /* Writes what has been trained, so that the run can go on from here. Caller's thread. */
  int32_t (*checkpoint)(void* context, mergeplan_error* error);
  /* One line for the user. Any thread. */
  void (*log)(void* context, int32_t level, const char* text);
  /* How much of the whole is done, 0..1 and not falling (other values are ignored), and at what
   * (may be NULL). Any thread. */
  void (*progress)(void* context, double fraction, const char* what);
  /* Non-zero when the user wants to stop: checkpoint and return MERGEPLAN_CANCELLED soon. Any
   * thread. */
  int32_t (*cancelled)(void* context);
  /* A struct that a later header defines under this name, or NULL. Valid as long as the table. Any
   * thread. */
  const void* (*get_extension)(void* context, const char* name);
} mergeplan_runtime;

/* Owned by the host, valid until execute() returns. */
typedef struct mergeplan_execute_request {
  uint32_t struct_size;
  int32_t parameter_count;
  const mergeplan_plan* plan;
  const mergeplan_parameter* const* parameters;
} mergeplan_execute_request;

/* ---- the plugin ------------------------------------------------------------------------------ */

/* What a plugin needs of the teacher; bits of mergeplan_plugin.teacher_needs. The words of the
 * manifest stand beside them. */
enum mergeplan_teacher_trait {
  MERGEPLAN_TEACHER_PREDICTS_X0 = 1,      /* "predicts-x0" */
  MERGEPLAN_TEACHER_PREDICTS_EPSILON = 2, /* "predicts-epsilon" */
  MERGEPLAN_TEACHER_PREDICTS_V = 4,       /* "predicts-v" */
  MERGEPLAN_TEACHER_GIVES_GRADIENTS = 8,  /* "gives-gradients" */
  MERGEPLAN_TEACHER_DATA_FREE = 16,       /* "data-free": inputs can be made without data */
  MERGEPLAN_TEACHER_HAS_SPECTRUM = 32     /* "has-spectrum": variances of the data are known */
};

/* Static data of the plugin, valid and unchanged for the life of the process (a library is never
 * unloaded). */
typedef struct mergeplan_plugin {
  uint32_t struct_size;
  uint32_t abi_major;        /* MERGEPLAN_ABI_MAJOR of the header it was built against */
  uint32_t abi_minor;        /* MERGEPLAN_ABI_MINOR, likewise */
  uint32_t abi_minor_needed; /* the oldest MINOR of a host that it can work with */
  const char* name;          /* the same as in the manifest, like all below */
  const char* version;
  const char* description; /* one line */
  uint64_t teacher_needs;  /* mergeplan_teacher_trait, or-ed */
  int32_t parameter_count;
  int32_t reserved; /* 0 */
  const mergeplan_parameter_spec* const* parameters;
  /* Makes a plan: adds its merges to `sink`, then sets the blocks. All arguments but `error` are
   * never NULL. The host checks the plan afterwards. The same request gives the same plan, unless a
   * time limit cuts a search short. Any thread, several at once. */
  int32_t (*plan)(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                  const mergeplan_plan_sink* sink, mergeplan_error* error);
  /* Trains every merge of the plan through `runtime`. OK means that all of them are trained;
   * CANCELLED that the user stopped it. Any thread, several at once. */
  int32_t (*execute)(const mergeplan_execute_request* request, const mergeplan_runtime* runtime,
                     mergeplan_error* error);
  /* A struct of the plugin's that a later header defines under this name, or NULL; the pointer may
   * itself be NULL. Static data. Any thread. */
  const void* (*get_extension)(const char* name);
} mergeplan_plugin;

/* The one exported function. Returns static data, never NULL, the same at every call, without side
 * effects. Any thread. */
MERGEPLAN_PLUGIN_EXPORT const mergeplan_plugin* mergeplan_plugin_entry(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MERGEPLAN_PLUGIN_H_ */

#pragma once

// MP_CLONES stands before a function whose plain loops are compiled twice, for all machines and for
// those with AVX2, and chosen at run time. Sanitizers do not go with the mechanism (an ifunc runs
// before they are ready), so their builds have the baseline only.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define MP_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define MP_CLONES
#endif

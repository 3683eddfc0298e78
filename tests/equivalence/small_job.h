// The job that tests of whole ranks train: small enough for milliseconds, with
// sizes that are no powers of two.
#ifndef TROUPE_TESTS_EQUIVALENCE_SMALL_JOB_H_
#define TROUPE_TESTS_EQUIVALENCE_SMALL_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// A GPT-2 of two blocks, four units: 20 steps of 8 sequences of 17 tokens, each
// of which all but follows from the one before. Makes the token file in the
// test's directory.
JobSpec SmallJob();

// The same with a Llama: two query heads to a key-value head, YaRN.
JobSpec SmallLlamaJob();

// The same with any architecture that computes; the first two as above.
JobSpec SmallJobOf(const std::string& architecture);

// Writes a token file, of this name in the test's directory, whose documents have
// these many tokens: each token all but follows from the one before it and from
// its place in the document, so that positions matter. Returns its path.
std::string WriteDocuments(const std::string& name,
                           const std::vector<int>& lengths);

// The job, which isolates documents, on a file of some that have one token to
// more than two sequences.
JobSpec IsolatingDocuments(JobSpec job);

// The job of 8 steps, for tests of many cuts: each of them does the same in
// every step, begins with what the one before left, and validates twice.
inline constexpr int64_t kFewSteps = 8;
JobSpec WithFewSteps(JobSpec job);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_SMALL_JOB_H_

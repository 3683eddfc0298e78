// Planning without a daemon: what `troupe-scheduler compile` does, so that
// `troupe plan` can show a plan and its prediction on any machine. A filter:
// one CompileRequest in, one CompileResponse out, both serialised. Programs and
// timeline, which are nearly all of a large answer, are in it only where they
// are asked for.
#ifndef TROUPE_SCHEDULER_COMPILE_COMPILE_H_
#define TROUPE_SCHEDULER_COMPILE_COMPILE_H_

#include <iosfwd>

#include "proto/scheduler.pb.h"

namespace troupe {

struct CompileOptions {
  bool programs = false;  // the plan's roles
  bool timeline = false;  // the predicted step
  bool progress = false;  // of a search, on stderr: one line, written over
};

// A refused job is an answer too: `error` says why.
CompileResponse Compile(CompileRequest request, const CompileOptions& options);

// Reads a CompileRequest to the end of `in` and writes a CompileResponse. The
// process's exit code: 0, or 1 where `in` is no CompileRequest or `out` fails.
int CompileMain(const CompileOptions& options, std::istream& in,
                std::ostream& out);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COMPILE_COMPILE_H_

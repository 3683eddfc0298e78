#include "worker/doctor/run_doctor.h"

#include <iostream>
#include <string>

#include "proto/base/log.h"
#include "worker/doctor/bounded.h"

namespace troupe {

int RunChecks(const std::vector<Check>& checks, const DoctorOptions& options,
              const DoctorStreams& streams) {
  std::vector<Finding> findings;
  for (const Check& check : checks) {
    Finding finding =
        RunBounded([&] { return check.run(options.subject); }, options.limit);
    finding.check = check.name;
    if (!options.json) streams.out << FindingText(finding) << std::flush;
    findings.push_back(std::move(finding));
  }
  if (options.json) streams.out << FindingsJson(findings) << std::flush;
  const std::string failure = FailureText(findings);
  if (failure.empty()) return 0;
  streams.err << failure << std::endl;
  return 1;
}

int RunDoctor(const DoctorOptions& options) {
  // What the parts that are tried log is in the findings.
  const absl::Status log =
      StartLog({.name = "troupe-worker", .level = LogLevel::kError});
  if (!log.ok()) {
    std::cerr << log.message() << std::endl;
    return 1;
  }
  return RunChecks(AllChecks(), options, {.out = std::cout, .err = std::cerr});
}

}  // namespace troupe

// For tests that are no C++ programs: leaves a brief calibration for workers
// with one thread.
#include <iostream>

#include "tests/cluster/brief_calibration.h"

int main() {
  const absl::Status status = troupe::CalibrateBriefly(/*threads=*/1);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}

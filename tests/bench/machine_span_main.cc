// How the machine is while another program measures: for versus_pytorch.py. A
// line "probe" on stdin probes; a number is the processor time, in seconds,
// that the measured programs took since this one started: it prints the line of
// machine_span.h and ends.
//
//   machine_span THREADS
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "tests/bench/machine_span.h"

int main(int argc, char** argv) {
  troupe::MachineSpan span(argc > 1 ? std::atoi(argv[1]) : 0);
  for (std::string line; std::getline(std::cin, line);) {
    double own_seconds = 0;
    if (line == "probe") {
      span.Probe();
    } else if (absl::SimpleAtod(line, &own_seconds)) {
      std::cout << span.Line(own_seconds) << std::endl;
      return 0;
    }
  }
  std::cerr << "usage: machine_span [THREADS], then on stdin: probe, or the "
               "seconds of processor time that were used\n";
  return 2;
}

// troupe: the command line of Troupe.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "clients/cli/run.h"

int main(int argc, char** argv) {
  const char* dir = std::getenv("TROUPE_DIR");
  troupe::Console console{
      .out = std::cout,
      .err = std::cerr,
      .terminal = isatty(STDOUT_FILENO) == 1,
      .width = 80,
      .environment_dir = dir == nullptr ? "" : dir,
  };
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    console.width = size.ws_col;
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return troupe::RunTroupe(arguments, console);
}

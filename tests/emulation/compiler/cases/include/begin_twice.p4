#define TWICE(statement) statement statement

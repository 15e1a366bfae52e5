broken: [is: {not: a state
